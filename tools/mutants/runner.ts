import { fileURLToPath } from 'node:url'
import { createVitest, type TestCase } from 'vitest/node'
import { luaModule, luaModules } from '../lua/script.ts'
import type { Mutant } from './mutant.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const TIMEOUT_MS = 600_000

/** Runs test files on the code with one fault, or without a fault. Returns their tests. */
export type Run = (files: string[], mutant?: Mutant) => Promise<TestCase[]>

/**
 * Starts Vitest. It stays in memory from mutant to mutant, since its start and the transformation of all modules take longer than
 * most test files.
 */
export async function startRunner(): Promise<{ run: Run; close: () => Promise<void> }> {
  let edit: Mutant | undefined
  const mutate = (text: string, file: string) =>
    edit?.file === file ? text.replace(edit.search, () => edit!.replace) : text

  const vitest = await createVitest(
    'test',
    {
      root,
      config: false,
      watch: false,
      reporters: [],
      include: ['{test,packages}/**/*.test.ts'],
      isolate: false,
      setupFiles: ['test/support/setup-file.ts', 'tools/mutants/setup.ts'],
      fsModuleCache: false, // a cached module may belong to another mutant
      maxWorkers: 1,
      bail: 1,
      expect: { poll: { timeout: 10_000 } },
      testTimeout: 60_000,
      hookTimeout: 60_000,
    },
    {
      resolve: { tsconfigPaths: true },
      plugins: [
        {
          name: 'mutated',
          enforce: 'pre',
          load: (id) => luaModule(id, (text, file) => mutate(text, `lua/${file}`)),
          transform: (code, id) => mutate(code, id.slice(root.length).replace(/\?.*$/, '')),
        },
      ],
    },
  )

  /** Vite forgets the module of a file, or those that are made of the Lua. */
  function invalidate({ file }: Mutant) {
    const generated = luaModules.map(([url]) => fileURLToPath(url))
    const changed = file.startsWith('lua/') ? generated : [root + file]
    for (const path of changed) vitest.invalidateFile(path)
  }

  return {
    async run(files, mutant) {
      const named = files.map((file) => `${root}${file}.test.ts`)
      const found = await vitest.globTestSpecifications(named)
      if (mutant) invalidate(mutant)
      edit = mutant
      const { promise: late, reject } = Promise.withResolvers<never>()
      const timer = setTimeout(() => reject(new Error(`${files} runs for ever`)), TIMEOUT_MS)
      const { testModules } = await Promise.race([vitest.runTestSpecifications(found), late])
      clearTimeout(timer)
      if (mutant) invalidate(mutant)
      // Vitest returns the modules of earlier runs, too.
      const ids = new Set(found.map(({ moduleId }) => moduleId))
      const ran = testModules.filter(({ moduleId }) => ids.has(moduleId))
      return ran.flatMap(({ children }) => [...children.allTests()])
    },
    close: () => vitest.close(),
  }
}
