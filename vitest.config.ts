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
    // Every test file runs a Redis and often a Worker of its own; more than a few at once only slow each other down.
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
})
