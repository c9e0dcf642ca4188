/** The files that `sluice init` writes. */
import { CLASS } from '../project/object-lines.ts'

/** A date that the pinned wrangler supports. A test compares it with this repository's wrangler.toml. */
export const COMPATIBILITY_DATE = '2026-10-01'

/** The configuration of wrangler, if init writes it. New features of wrangler are in JSON only. */
export const WRANGLER = 'wrangler.jsonc'

/** The Worker, if init writes it. */
export const WORKER = 'src/worker.ts'

/**
 * @param settings lines about the destination of admitted requests, or the address of clients
 * @param isGateway true if the Worker has a dashboard
 */
const config = (
  settings: string,
  inObjects: boolean,
  isGateway = false,
) => `import { defineConfig } from 'sluice'
${inObjects ? "import { durableObjects } from 'sluice/durable-objects'\n" : ''}${isGateway ? "import { observe } from 'sluice/features'\n" : ''}
/** The configuration of Sluice. "npx sluice check" finds mistakes. */
export default defineConfig({
${settings}${inObjects ? STORE : ''}${isGateway ? OBSERVE : ''}  policies: [
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

const ORIGIN = `  // 'zone' is the origin of the zone that routes to this Worker. A URL works too.
  origin: 'zone',
`

const OBSERVE = `  // Counts requests, for the dashboard.
  use: [observe()],
`

const STORE = `  // Each client is counted by a Durable Object: no database.
  store: durableObjects(),
`

const worker = (inObjects: boolean) => `import config, { createGateway } from '../sluice.built'
${inObjects ? `${CLASS}\n` : ''}export { RateLimit } from 'sluice/rpc'
export default createGateway(config)
`

const test = (main: string) => `import { startSluice } from 'sluice/testing'
import { afterAll, expect, test } from 'vitest'

// Your Worker and what it needs, on free ports.
const sluice = await startSluice({ worker: { main: '${main}' } })
afterAll(() => sluice.stop())

test('A client may send ten requests in ten seconds.', async () => {
  const statuses: number[] = []
  for (let count = 1; count <= 11; count++) {
    const response = await sluice.fetch('/', { ip: '192.0.2.1' })
    statuses.push(response.status)
  }
  expect(statuses.indexOf(429)).toBe(10)
})
`

const wrangler = (name: string, inObjects: boolean, exec: string) => `{
  "$schema": "node_modules/wrangler/config-schema.json",
  "name": "${name}",
  "main": "${WORKER}",
  "compatibility_date": "${COMPATIBILITY_DATE}",
  "minify": true,
  // Writes sluice.built.ts, which the Worker imports.
  "build": { "command": "${exec} sluice build", "watch_dir": "sluice.config.ts" },
  // In front of your zone's own origin (origin: 'zone' in sluice.config.ts):
  // "routes": [{ "pattern": "www.example.com/*", "zone_name": "example.com" }],
  "observability": { "enabled": true }${inObjects ? OBJECTS : ''}
}
`

const OBJECTS = `,
  // The Durable Objects that count.
  "durable_objects": {
    "bindings": [{ "name": "SLUICE_SUBJECT", "class_name": "SluiceSubject" }]
  },
  "exports": {
    "SluiceSubject": { "type": "durable-object", "storage": "sqlite" }
  }`

const tsconfig = `{
  "compilerOptions": {
    "target": "ES2022",
    "lib": ["ES2023", "WebWorker", "WebWorker.AsyncIterable"],
    "types": [],
    "module": "ESNext",
    "moduleResolution": "Bundler",
    "allowImportingTsExtensions": true,
    "strict": true,
    "skipLibCheck": true,
    "noEmit": true
  },
  "include": ["sluice.config.ts", "src", "test"]
}
`

/** The file that is written only if there is none. */
export const TSCONFIG = 'tsconfig.json'

/**
 * The files of a project whose Worker is a gateway.
 * @param name the name of the Worker
 * @param inObjects true if Durable Objects count, and not Redis
 * @param exec runs a command of an installed package
 */
export const gatewayFiles = (
  name: string,
  inObjects: boolean,
  exec = 'npx',
): Record<string, string> => ({
  'sluice.config.ts': config(ORIGIN, inObjects, true),
  [WRANGLER]: wrangler(name, inObjects, exec),
  [WORKER]: worker(inObjects),
  'test/policies.test.ts': test(WORKER),
  [TSCONFIG]: tsconfig,
})

/**
 * The files for a Worker that exists.
 * @param main its path
 * @param isGateway true if it forwards requests to an origin
 * @param inObjects true if Durable Objects count, and not Redis
 */
export const appFiles = (
  main: string,
  isGateway: boolean,
  inObjects: boolean,
): Record<string, string> => ({
  'sluice.config.ts': config(isGateway ? ORIGIN : '', inObjects, isGateway),
  'test/policies.test.ts': test(main),
})

/**
 * The configuration of an app on Node.
 * @param clientAddress the setting that fits its framework
 */
export const nodeConfig = (clientAddress: string): string =>
  config(
    `  // 'socket' for clients that connect directly. Behind proxies: npx sluice docs node.
  clientAddress: ${clientAddress},
`,
    false,
  )

/** What Git must not store. */
export const IGNORED = ['node_modules/', '.dev.vars', '.env*', '.wrangler/']

/** The scripts of a Worker that imports the module of `sluice build`. */
export const SCRIPTS: Record<string, string> = {
  dev: 'sluice dev',
  check: 'sluice check',
  deploy: 'sluice build && sluice check && wrangler deploy',
  test: 'vitest run',
}

/** The scripts of a Worker that imports the configuration. */
export const UNBUILT: Record<string, string> = {
  ...SCRIPTS,
  deploy: 'sluice check && wrangler deploy',
}
