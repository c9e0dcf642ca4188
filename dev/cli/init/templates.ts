/** The files that `sluice init` writes. */

/** A date that the pinned wrangler supports. A test compares it with this repository's wrangler.toml. */
export const COMPATIBILITY_DATE = '2026-10-01'

const config = `import { defineConfig } from 'sluice'

/** The policies, and the origin behind the Worker. "npx sluice check" finds mistakes. */
export default defineConfig({
  // 'zone' is the origin of the zone that routes to this Worker. A URL works too.
  origin: 'zone',
  policies: [
    { name: 'per-ip', limit: 10, window: '10s' },
    {
      name: 'login',
      algorithm: 'fixed-window',
      limit: 5,
      window: '1m',
      match: { path: '/login', method: 'POST' },
      onStoreError: 'deny',
    },
  ],
})
`

const worker = `import { createGateway } from 'sluice'
import config from '../sluice.config'
export default createGateway(config)
`

const test = `import { startSluice } from 'sluice/testing'
import { afterAll, expect, test } from 'vitest'

// A real Redis and your Worker, on free ports.
const sluice = await startSluice({ worker: { main: 'src/worker.ts' } })
afterAll(() => sluice.stop())

test('A client may try to log in five times a minute.', async () => {
  const statuses: number[] = []
  for (let attempt = 1; attempt <= 6; attempt++) {
    const response = await sluice.fetch('/login', { method: 'POST', ip: '192.0.2.1' })
    statuses.push(response.status)
  }
  expect(statuses).toEqual([200, 200, 200, 200, 200, 429])
})
`

const wrangler = (name: string) => `name = "${name}"
main = "src/worker.ts"
compatibility_date = "${COMPATIBILITY_DATE}"

# In front of your zone's own origin (origin: 'zone' in sluice.config.ts):
# routes = [{ pattern = "www.example.com/*", zone_name = "example.com" }]

[observability]
enabled = true
`

const tsconfig = `{
  "compilerOptions": {
    "target": "ES2022",
    "lib": ["ES2023", "WebWorker", "WebWorker.AsyncIterable"],
    "types": [],
    "module": "ESNext",
    "moduleResolution": "Bundler",
    "strict": true,
    "skipLibCheck": true,
    "noEmit": true
  },
  "include": ["sluice.config.ts", "src", "test"]
}
`

/** The file that is written only if there is none. */
export const TSCONFIG = 'tsconfig.json'

/** @param name the name of the Worker */
export const filesOf = (name: string): Record<string, string> => ({
  'sluice.config.ts': config,
  'wrangler.toml': wrangler(name),
  'src/worker.ts': worker,
  'test/policies.test.ts': test,
  [TSCONFIG]: tsconfig,
})

/** What Git must not store. */
export const IGNORED = ['node_modules/', '.dev.vars', '.env*', '.wrangler/']

export const SCRIPTS: Record<string, string> = {
  dev: 'sluice dev',
  check: 'sluice check',
  deploy: 'sluice check && wrangler deploy',
  test: 'vitest run',
}
