import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { luaModule } from '../lua/script.ts'
import type { Mutant } from './mutant.ts'

type Edit = Pick<Mutant, 'file' | 'search' | 'replace'>

/** The edits of one mutant, from the variable `MUTANT`. The plugin applies them to what the tests import. */
const edits: Edit[] = JSON.parse(process.env.MUTANT ?? '[]')
const root = fileURLToPath(new URL('../..', import.meta.url))

const mutate = (text: string, file: string) =>
  edits
    .filter((edit) => edit.file === file)
    .reduce((result, { search, replace }) => result.replace(search, () => replace), text)

export default defineConfig({
  root,
  resolve: { tsconfigPaths: true },
  plugins: [
    {
      name: 'mutated',
      enforce: 'pre',
      load: (id) => luaModule(id, (text, file) => mutate(text, `lua/${file}`)),
      transform: (code, id) => mutate(code, id.slice(root.length).replace(/\?.*$/, '')),
    },
  ],
  test: {
    include: ['test/**/*.test.ts'],
    isolate: false,
    setupFiles: ['test/support/setup-file.ts', new URL('setup.ts', import.meta.url).pathname],
    fsModuleCache: false, // a cached module may belong to another mutant
    maxWorkers: 2,
    expect: { poll: { timeout: 10_000 } },
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
})
