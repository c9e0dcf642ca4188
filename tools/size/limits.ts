/** A bundle, and its maximum size in KiB: minified and compressed, with its dependencies. */
export interface SizeLimit {
  name: string
  /** A file of dist, without Hono. Undefined for the Worker of this repository, which has Hono. */
  file?: string
  /** Defaults to all exports. */
  exports?: string
  /** The parts that a module of one policy imports from `sluice/built` besides. Defaults to none. */
  parts?: string
  /** Runs in Node only. Defaults to false: a Worker. */
  node?: boolean
  maxKiB: number
}

/** With the client `@upstash/redis`, 17 KiB of it. */
export const workerLimit: SizeLimit = { name: 'Worker', maxKiB: 70.2 }

// Each host has all features without parameters (src/features/defaults.ts). Without a build step no bundler can leave out those that a
// configuration does not use.
export const entryLimits: SizeLimit[] = [
  { name: 'rateLimiter of sluice', file: 'index.js', exports: 'rateLimiter', maxKiB: 66.4 },
  { name: 'createGateway of sluice', file: 'index.js', exports: 'createGateway', maxKiB: 78.5 },
  { name: 'sluice/node', file: 'node.js', maxKiB: 68.5 },
  { name: 'sluice/next', file: 'next.js', maxKiB: 64.7 },
  { name: 'sluice/better-auth', file: 'better-auth.js', maxKiB: 33 },
  { name: 'sluice/express-rate-limit', file: 'express-rate-limit.js', maxKiB: 32 },
  { name: 'sluice/nest', file: 'nest.js', maxKiB: 34 },
  { name: 'sluice/client', file: 'client.js', maxKiB: 4 },
  { name: 'sluice/limits', file: 'limits.js', maxKiB: 42 },
  {
    name: 'rateLimiter of sluice/built, one policy',
    file: 'built.js',
    exports: 'rateLimiter, built, denialCache, local',
    maxKiB: 35.1,
  },
  {
    name: 'rateLimiter of sluice/built, nothing is counted locally',
    file: 'built.js',
    exports: 'rateLimiter, built, denialCache',
    maxKiB: 32.5,
  },
  {
    name: 'createGateway of sluice/built',
    file: 'built.js',
    exports: 'createGateway, built, denialCache, local',
    maxKiB: 46.8,
  },
  {
    name: 'createWorker of sluice/built',
    file: 'built.js',
    exports: 'createWorker, built, denialCache, local, conditions, observing',
    maxKiB: 53.9,
  },
  {
    name: 'sluice/built/node',
    file: 'built/node.js',
    exports: 'rateLimiter',
    parts: 'denialCache, local',
    maxKiB: 36.6,
  },
  {
    name: 'sluice/built/next',
    file: 'built/next.js',
    exports: 'rateLimitProxy',
    parts: 'denialCache, local',
    maxKiB: 32.6,
  },
  {
    name: 'limits of sluice/built/limits',
    file: 'built/limits.js',
    exports: 'limits, built, denialCache, local',
    maxKiB: 25.8,
  },
  { name: 'sluice/built/parser', file: 'built/parser.js', maxKiB: 16 },
  { name: 'defineConfig of sluice', file: 'index.js', exports: 'defineConfig', maxKiB: 0.2 },
  { name: 'sluice/rpc', file: 'rpc.js', maxKiB: 8 },
  { name: 'sluice/features', file: 'features.js', maxKiB: 69 },
  { name: 'bodies of sluice/features', file: 'features.js', exports: 'bodies', maxKiB: 12 },
  { name: 'endpoints of sluice/features', file: 'features.js', exports: 'endpoints', maxKiB: 23.3 },
  { name: 'jwt of sluice/features', file: 'features.js', exports: 'jwt', maxKiB: 12.3 },
  { name: 'observe of sluice/features', file: 'features.js', exports: 'observe', maxKiB: 13.2 },
  { name: 'quota of sluice/features', file: 'features.js', exports: 'quota', maxKiB: 21.6 },
  { name: 'verify of sluice/features', file: 'features.js', exports: 'verify', maxKiB: 4 },
  { name: 'sluice/graphql', file: 'graphql.js', maxKiB: 12 },
  { name: 'sluice/outbound', file: 'outbound.js', maxKiB: 57.4 },
  { name: 'sluice/redis', file: 'redis.js', maxKiB: 4 },
  { name: 'sluice/upstash', file: 'upstash.js', maxKiB: 2 },
  { name: 'sluice/durable-objects', file: 'durable-objects.js', maxKiB: 14.2 },
  { name: 'sluice/lint', file: 'lint.js', maxKiB: 38 },
  { name: 'sluice/testing', file: 'testing.js', node: true, maxKiB: 24 },
  { name: 'npx sluice', file: 'cli.js', node: true, maxKiB: 228 },
]
