import '../../bench/lua-loader.mjs'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { Plugin } from 'rolldown'

const file = fileURLToPath(new URL('../../src/store/upstash/script-text.ts', import.meta.url))

/**
 * Replaces src/store/upstash/script-text.ts with its own exports, so that the package contains no Lua file and computes no digest.
 */
export const inlineScript = (): Plugin => ({
  name: 'inline-script',
  async load(id) {
    if (id !== file) return
    const { script, scriptSha } = await import(pathToFileURL(file).href)
    return `
      export const script = ${JSON.stringify(script)}
      export const scriptSha = async () => ${JSON.stringify(await scriptSha())}`
  },
})
