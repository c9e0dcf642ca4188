import { readFile } from 'node:fs/promises'
import { configDefaults, defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { Tally } from './dev/tally.ts'

/** The slowest test files. They start first, so that none of them is the last one to run. */
const longest = [
  'test/dev/start-reload',
  'test/dev/start',
  'test/script/oracle',
  'test/unit/store/leases-laws',
  'test/worker/fuzz',
  'test/script/waits',
  'test/script/linearizability',
  'test/faults/overload',
]

/** Tests that measure latency. */
const timed = ['test/faults/**/*.test.ts', 'bench/test/chaos.test.ts']

/** Tests of the packed package. `npm run test:package` runs them. */
const packaged = 'test/package/**/*.test.ts'

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]) {
    const rank = ({ moduleId }: TestSpecification) => {
      const place = longest.findIndex((name) => moduleId.includes(`${name}.`))
      return place < 0 ? longest.length : place
    }
    return (await super.sort(files)).sort((one, other) => rank(one) - rank(other))
  }
}

export default defineConfig({
  resolve: { tsconfigPaths: true }, // `sluice` is src/index.ts
  plugins: [
    {
      // Imports .lua files as text, as wrangler's Text rule does for the Worker.
      name: 'lua-as-text',
      async load(id) {
        if (id.endsWith('.lua'))
          return `export default ${JSON.stringify(await readFile(id, 'utf8'))}`
      },
    },
  ],
  test: {
    globalSetup: 'test/support/global-setup.ts',
    reporters: ['default', new Tally()],
    // Importing Miniflare and the Redis client takes longer than most files. Without isolation a process imports them once.
    isolate: false,
    setupFiles: 'test/support/setup-file.ts',
    sequence: { sequencer: LongestFirst },
    testTimeout: 30_000,
    hookTimeout: 60_000,
    projects: [
      {
        extends: true,
        test: {
          name: 'main',
          include: ['{test,packages,bench,examples}/**/*.test.ts'],
          exclude: [...configDefaults.exclude, ...timed, packaged],
          // More workers than cores: many files wait for a timer or another process.
          maxWorkers: 3,
          sequence: { groupOrder: 0 },
        },
      },
      // Runs after the main group, whose load would distort the measured times.
      {
        extends: true,
        test: { name: 'timed', include: timed, maxWorkers: 2, sequence: { groupOrder: 1 } },
      },
      {
        extends: true,
        test: {
          name: 'package',
          include: [packaged],
          globalSetup: 'test/package/support/setup.ts',
          maxWorkers: 2,
          testTimeout: 300_000, // npm install, wrangler and tsc
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
})
