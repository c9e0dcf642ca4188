import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { configDefaults, defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { luaModule } from './tools/lua/script.ts'
import { Tally } from './tools/tally.ts'

// Compiling the modules of a Node process takes longer than most of the commands that the tests start.
process.env.NODE_COMPILE_CACHE ??= fileURLToPath(
  new URL('node_modules/.cache/compile', import.meta.url),
)

// The programs of Go, esbuild and tsc, take a third less time when they collect garbage less often.
process.env.GOGC ??= '400'

/** The slowest test files. They start first, so that none of them is the last one to run. */
const longest = [
  'test/unit/testing/start',
  'test/cli/dashboard-page',
  'test/cli/dev.',
  'test/docs/examples',
  'test/worker/testing',
  'worker/verify/sabotage',
  'test/cli/init',
  'test/cli/reload',
  'test/unit/features/turns/laws',
  'test/cli/check-objects',
  'test/cli/build',
  'test/cli/project',
  'test/unit/stores/redis',
  'durable-objects/object',
  'test/docs/replay',
  'test/cli/replay-command',
  'test/unit/hosts/spellings',
  'test/worker/forward-auth',
  'test/worker/credentials',
  'upstash-bridge/test/production',
  'upstash-bridge/test/faults',
  'test/worker/concurrency',
  'test/tools/bench/simulate-run',
  'test/script/oracle',
  'test/faults/doors',
  'test/faults/late-replies',
  'test/unit/outbound/fallback',
  'test/script/both-stores',
  'test/script/reserve',
  'test/cli/verify-client',
  'test/unit/features/jwt/jwks',
  'test/worker/usage',
  'test/cli/mistakes',
  'test/tools/release',
  'upstash-bridge/test/hostile',
  'test/site/playground-page',
]

const isCI = Boolean(process.env.CI)

/** Tests that need many runs or much time. They run only in `npm run test:long`. */
const longOnly = '**/*.long.test.ts'

/** Tests that make more attempts and try more combinations in `npm run test:long`: those that read `isLong`, or state laws. */
const scaled = globSync('{test,packages}/**/*.test.ts', {
  exclude: ['**/node_modules'],
}).filter((file) => /support\/(long|law)\.ts'/.test(readFileSync(file, 'utf8')))

/** Tests of a store that fails. */
const faults = 'test/faults/**/*.test.ts'

/** Those that measure latency. */
const timed = ['breaker', 'deadline', 'every-fault', 'observe', 'overload'].map(
  (name) => `test/faults/${name}.test.ts`,
)

/** Parts of the bridge that a local test of Sluice does not use: clusters, Sentinel, production. */
const productionOfBridge = [
  'access',
  'cluster-*',
  'functions',
  'hostile*',
  'production',
  'sentinel',
  'slot',
  'streams',
  'throughput',
].map((name) => `packages/upstash-bridge/test/${name}.test.ts`)

/** Tests of what only this repository runs, and of `sluice replay`. `npm test` proves the product; `npm run test:all` runs these too. */
const tools = [
  'test/{tools,site}/**/*.test.ts',
  'test/cli/{replay-command.test.ts,replay/**/*.test.ts}',
  'test/docs/replay.test.ts',
  ...productionOfBridge,
]

/** Tests of the bridge that use no cluster, or start their own. */
const oneServer = [
  'access',
  'cli',
  'cluster-*',
  'faults',
  'production',
  'redis',
  'sentinel',
  'throughput',
].map((name) => `packages/upstash-bridge/test/${name}.test.ts`)

/** Tests of the Worker's store in front of a Redis Cluster. */
const clustered = 'test/cluster/**/*.test.ts'

/** Laws that ask a store only for decisions and states. */
const onObjects = [
  'backwards',
  'bounds',
  'calendar',
  'distinct',
  'extremes',
  'follow',
  'linearizability',
  'oracle',
  'penalty',
  'plans',
  'quota',
  'refund',
  'reserve',
  'throttle',
  'unchanged',
  'waits',
]
  .map((name) => `test/script/${name}.test.ts`)
  .concat('test/unit/features/leases/laws.test.ts')

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
  resolve: {
    tsconfigPaths: true, // `sluice` is src/index.ts
    alias: [
      // What the package imports on Node, Bun and Deno.
      {
        find: /^.*\/core\/base\/redis-url\.ts$/,
        replacement: fileURLToPath(new URL('src/stores/redis-url.ts', import.meta.url)),
      },
    ],
  },
  plugins: [
    {
      // The script from the current files of lua/, without `npm run lua`.
      name: 'current-script',
      load: (id) => luaModule(id),
    },
  ],
  test: {
    globalSetup: 'test/support/global-setup.ts',
    reporters: ['default', new Tally()],
    // Importing Miniflare and the Redis client takes longer than most files. Without isolation a process imports them once.
    isolate: false,
    // A bundle of a configuration, which Node loads in `sluice check`, is 1 MB. Vite would need half a second for each.
    server: { deps: { external: [/sluice-config-/] } },
    setupFiles: 'test/support/setup-file.ts',
    sequence: { sequencer: LongestFirst },
    // On a busy machine a test of real processes may fail by its timing. A law that fails once is broken, so laws do not run again.
    retry: { count: isCI ? 2 : 0, condition: /^(?!Property failed)/ },
    // Long, since a busy machine needs a multiple of the usual time to start Redis, workerd and wrangler.
    expect: { poll: { timeout: 20_000 } },
    testTimeout: 60_000,
    hookTimeout: 60_000,
    projects: [
      {
        extends: true,
        test: {
          name: 'main',
          include: ['{test,packages,examples}/**/*.test.ts'],
          exclude: [...configDefaults.exclude, ...timed, ...tools, clustered, packaged, longOnly],
          // More workers than cores: many files wait for a timer or another process.
          maxWorkers: 7,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'tools',
          include: tools,
          exclude: [...configDefaults.exclude, longOnly],
          maxWorkers: 7,
          sequence: { groupOrder: 0 },
        },
      },
      // Runs after the main group, whose load would distort the measured times.
      {
        extends: true,
        test: {
          name: 'timed',
          include: timed,
          exclude: [...configDefaults.exclude, longOnly],
          maxWorkers: 2, // most of them wait for a deadline
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: 'long',
          include: [...scaled, longOnly],
          exclude: [...configDefaults.exclude, faults],
          env: { TEST_LONG: '1' },
          maxWorkers: 3,
          sequence: { groupOrder: 2 },
        },
      },
      {
        extends: true,
        test: {
          name: 'long-timed',
          include: [faults],
          env: { TEST_LONG: '1' },
          maxWorkers: isCI ? 1 : 2,
          sequence: { groupOrder: 3 },
        },
      },
      // The tests of the store and, again, of the bridge against a Redis Cluster.
      {
        extends: true,
        test: {
          name: 'cluster',
          include: ['packages/upstash-bridge/test/**/*.test.ts', clustered],
          exclude: [...configDefaults.exclude, ...oneServer],
          env: { BRIDGE_TEST_CLUSTER: '1' },
          maxWorkers: 2,
          sequence: { groupOrder: 4 },
        },
      },
      // The laws of the script, on Durable Objects.
      {
        extends: true,
        test: {
          name: 'objects',
          include: onObjects,
          env: { TEST_STORE: 'durable-objects', LAW_RUNS: process.env.LAW_RUNS ?? '16' },
          maxWorkers: 2,
          sequence: { groupOrder: 6 },
        },
      },
      {
        extends: true,
        test: {
          name: 'package',
          include: [packaged],
          globalSetup: 'test/package/support/setup.ts',
          maxWorkers: 2,
          testTimeout: 300_000, // npm install, wrangler and tsc
          sequence: { groupOrder: 5 },
        },
      },
    ],
  },
})
