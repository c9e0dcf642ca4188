import { defineConfig } from 'vitest/config'
import { luaModule } from '../lua/script.ts'

/** The edits of one mutant, from the variable `MUTANT`. The plugin applies them to the Lua that the tests import. */
const edits: [file: string, search: string, replace: string][] = JSON.parse(
  process.env.MUTANT ?? '[]',
)

const mutate = (text: string, file: string) =>
  edits
    .filter(([edited]) => edited === file)
    .reduce((result, [, search, replace]) => result.replace(search, () => replace), text)

export default defineConfig({
  plugins: [
    {
      name: 'mutated-script',
      load: (id) => luaModule(id, mutate),
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
