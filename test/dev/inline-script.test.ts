import { createHash } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'
import { expect, test } from 'vitest'
import { inlineScript } from '../../dev/package/inline-script.ts'
import { script, scriptSha } from '../../src/store/upstash/script-text.ts'

test('The build inlines the same script, byte for byte, with its SHA-1, and no other module.', async () => {
  const bundle = await rolldown({
    input: fileURLToPath(new URL('../../src/store/upstash/script-text.ts', import.meta.url)),
    plugins: [inlineScript()],
  })
  const { output } = await bundle.generate({ minify: true })
  await bundle.close()
  expect(output[0].moduleIds).toHaveLength(1)
  expect(output[0].code).not.toContain('crypto')
  const url = `data:text/javascript;base64,${Buffer.from(output[0].code).toString('base64')}`
  const built: typeof import('../../src/store/upstash/script-text.ts') = await import(url)
  expect(built.script).toBe(script)
  expect(await built.scriptSha()).toBe(createHash('sha1').update(script).digest('hex'))
  expect(await scriptSha()).toBe(await built.scriptSha())
})
