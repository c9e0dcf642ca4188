import { readFile } from 'node:fs/promises'
import { defineConfig } from 'vitest/config'
import { Tally } from './dev/tally.ts'

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
    // Many files wait for real time or for another process; more than a few at once only slow each other down.
    maxWorkers: 3,
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
})
