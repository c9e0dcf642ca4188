import { readFile } from 'node:fs/promises'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { Tally } from './dev/tally.ts'

/** The longest files, which run first: the last file to start must not be a long one. */
const longest = [
  'test/dev/start',
  'test/script/oracle',
  'test/unit/store/leases',
  'test/worker/fuzz',
  'test/script/waits',
  'test/script/linearizability',
  'test/faults/overload',
]

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
  plugins: [
    {
      // What wrangler's Text rule does for the Worker.
      name: 'lua-as-text',
      async load(id) {
        if (id.endsWith('.lua'))
          return `export default ${JSON.stringify(await readFile(id, 'utf8'))}`
      },
    },
  ],
  test: {
    include: ['{test,packages,bench,examples}/**/*.test.ts'],
    globalSetup: 'test/support/global.ts',
    reporters: ['default', new Tally()],
    // Importing Miniflare and Redis' client takes longer than most files: a process does it once, for many files.
    isolate: false,
    setupFiles: 'test/support/fresh.ts',
    sequence: { sequencer: LongestFirst },
    // Many files wait for real time or for another process; more than a few at once only slow each other down.
    maxWorkers: 3,
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
})
