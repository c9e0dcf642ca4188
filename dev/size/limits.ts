/** A bundle, and its maximum size in KiB: minified and compressed, with its dependencies. */
export interface SizeLimit {
  name: string
  /** A file of dist, without Hono. Undefined for the Worker of this repository, which has Hono. */
  file?: string
  /** Defaults to all exports. */
  exports?: string
  /** Runs in Node only. Defaults to false: a Worker. */
  node?: boolean
  maxKiB: number
}

export const workerLimit: SizeLimit = { name: 'Worker', maxKiB: 99 }

export const entryLimits: SizeLimit[] = [
  { name: 'rateLimiter of sluice', file: 'index.js', exports: 'rateLimiter', maxKiB: 46.6 },
  { name: 'createGateway of sluice', file: 'index.js', exports: 'createGateway', maxKiB: 72.3 },
  { name: 'sluice/node', file: 'node.js', maxKiB: 48.9 },
  { name: 'sluice/next', file: 'next.js', maxKiB: 47.4 },
  { name: 'sluice/better-auth', file: 'better-auth.js', maxKiB: 41.5 },
  { name: 'sluice/express-rate-limit', file: 'express-rate-limit.js', maxKiB: 40.6 },
  { name: 'sluice/nest', file: 'nest.js', maxKiB: 42.6 },
  { name: 'sluice/client', file: 'client.js', maxKiB: 3.3 },
  { name: 'sluice/observe', file: 'observe.js', maxKiB: 15 },
  { name: 'sluice/bodies', file: 'bodies.js', maxKiB: 12 },
  { name: 'sluice/graphql', file: 'graphql.js', maxKiB: 12 },
  { name: 'sluice/jwt', file: 'jwt.js', maxKiB: 12 },
  { name: 'sluice/bans', file: 'bans.js', maxKiB: 4 },
  { name: 'sluice/ban-list', file: 'ban-list.js', maxKiB: 11 },
  { name: 'sluice/concurrency', file: 'concurrency.js', maxKiB: 3 },
  { name: 'sluice/distinct', file: 'distinct.js', maxKiB: 3 },
  { name: 'sluice/header-sets', file: 'header-sets.js', maxKiB: 4 },
  { name: 'sluice/plans', file: 'plans.js', maxKiB: 7 },
  { name: 'sluice/sliding-log', file: 'sliding-log.js', maxKiB: 2 },
  { name: 'sluice/live', file: 'live.js', maxKiB: 13 },
  { name: 'sluice/shield', file: 'shield.js', maxKiB: 4 },
  { name: 'sluice/leases', file: 'leases.js', maxKiB: 7 },
  { name: 'sluice/outbound', file: 'outbound.js', maxKiB: 55.5 },
  { name: 'sluice/overrides', file: 'overrides.js', maxKiB: 13.9 },
  { name: 'sluice/jitter', file: 'jitter.js', maxKiB: 1 },
  { name: 'sluice/quota', file: 'quota.js', maxKiB: 22.4 },
  { name: 'sluice/proxies', file: 'proxies.js', maxKiB: 1 },
  { name: 'sluice/refusals', file: 'refusals.js', maxKiB: 5 },
  { name: 'sluice/cluster', file: 'cluster.js', maxKiB: 4 },
  { name: 'sluice/endpoints', file: 'endpoints.js', maxKiB: 23.3 },
  { name: 'sluice/verify', file: 'verify.js', maxKiB: 4 },
  { name: 'sluice/turns', file: 'turns.js', maxKiB: 7.5 },
  { name: 'sluice/upstash', file: 'upstash.js', maxKiB: 2 },
  { name: 'sluice/durable-objects', file: 'durable-objects.js', maxKiB: 14.2 },
  { name: 'sluice/lint', file: 'lint.js', maxKiB: 38 },
  { name: 'sluice/testing', file: 'testing.js', node: true, maxKiB: 24 },
  { name: 'npx sluice', file: 'cli.js', node: true, maxKiB: 234 },
]
