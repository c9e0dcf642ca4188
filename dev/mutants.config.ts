import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { defineConfig } from 'vitest/config'

/** vitest for one mutant: the tests see `MUTANT`, a list of `[file, search, replace]`, in place of the Lua on disk. */
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
  test: { maxWorkers: 2, testTimeout: 60_000, hookTimeout: 60_000 },
})
