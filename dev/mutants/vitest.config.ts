import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { defineConfig } from 'vitest/config'

/** The edits of one mutant, from the variable `MUTANT`. The plugin applies them to the Lua that the tests import. */
const edits: [file: string, search: string, replace: string][] = JSON.parse(
  process.env.MUTANT ?? '[]',
)

export default defineConfig({
  plugins: [
    {
      name: 'mutated-lua-as-text',
      async load(id) {
        if (!id.endsWith('.lua')) return
        let text = await readFile(id, 'utf8')
        for (const [file, search, replace] of edits) {
          if (file === basename(id)) text = text.replace(search, () => replace)
        }
        return `export default ${JSON.stringify(text)}`
      },
    },
  ],
  test: {
    include: ['test/script/*.test.ts', 'test/model/seeds.test.ts'],
    setupFiles: new URL('setup.ts', import.meta.url).pathname,
    fsModuleCache: false, // a cached script may belong to another mutant
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
})
