/** `sluice verify` raises no false alarm. */

import { createServer } from 'node:http'
import fc from 'fast-check'
import { beforeAll, expect, test } from 'vitest'
import { verifyDeployment } from '../../cli/verify/run.ts'
import { parseConfig } from '../../src/core/config/parse.ts'
import { defaultFields } from '../../src/features/defaults.ts'
import { jitter } from '../../src/features/jitter/index.ts'
import { verify } from '../../src/features/verify/index.ts'
import { rateLimiter } from '../../src/hosts/node/node.ts'
import { bans, concurrency, leases, slidingLog } from '../support/features.ts'
import { configOf, listen, useDatabase } from '../support/node-servers.ts'

const TOKEN = 'a-token-to-verify-with'
useDatabase()
beforeAll(() => void Object.assign(process.env, { SLUICE_VERIFY_TOKEN: TOKEN }))

const policy = fc.record({
  algorithm: fc.constantFrom(
    'fixed-window',
    'sliding-window',
    'sliding-log',
    'token-bucket',
    'gcra',
  ),
  limit: fc.oneof(fc.integer({ min: 1, max: 30 }), fc.constantFrom(100, 1000, 9_999)),
  window: fc.constantFrom('1s', '3s', '10s', '1m', '1h', '1d'),
  match: fc.constantFrom(
    undefined,
    { path: '/login', method: 'POST' },
    { path: '/api/*' },
    { path: ['/users/:id', '/teams/:id'] },
    { header: { 'x-kind': ['bulk*', 'batch'] } },
    { query: { action: 'export' }, method: ['PUT', 'DELETE'] },
  ),
  key: fc.constantFrom(
    'ip',
    'global',
    'header:x-user',
    ['ip', 'path'],
    'cookie:session',
    'query:q',
  ),
  cost: fc.constantFrom(undefined, undefined, 1, 2),
  more: fc.constantFrom(
    ...Array(6).fill(undefined),
    'clock',
    'calendar',
    'lease',
    'penalty',
    'slots',
    'refund',
  ),
})

/** The fields of a policy with one field that makes it harder to prove. */
function withMore({ more, ...one }: { more?: string | undefined; [field: string]: unknown }) {
  const { algorithm: _, window: __, ...rest } = one
  switch (more) {
    case 'clock':
      return { ...one, algorithm: 'fixed-window', align: 'clock' }
    case 'calendar':
      return { ...rest, algorithm: 'fixed-window', window: 'day', timeZone: 'Europe/Berlin' }
    case 'lease':
      return { ...one, algorithm: 'fixed-window', lease: { max: 2, ttl: '5s' } }
    case 'penalty':
      return { ...one, penalty: { after: 3, within: '1m', ban: '5m' } }
    case 'slots':
      return { ...rest, algorithm: 'concurrency', window: '1m' }
    case 'refund':
      return { ...one, algorithm: 'fixed-window', countOnly: '4xx' }
    default:
      return one
  }
}

const configuration = fc.array(policy, { minLength: 1, maxLength: 4 }).map((all) =>
  configOf({
    policies: all.map(({ match, cost, ...one }, index) => ({
      name: `policy-${index}`,
      ...withMore(one),
      ...(match && { match }),
      ...(cost && one.algorithm !== 'gcra' && cost <= one.limit && { cost }),
    })) as never,
    use: [verify(), slidingLog(), bans(), concurrency(), leases(), jitter('20%')],
  }),
)

// Real waits on a real server: a machine that stands still in one of them makes it look wrong.
test('100 random healthy configurations have no problem.', {
  timeout: 300_000,
  retry: 2,
}, async () => {
  let checked = 0
  let proven = 0
  const run = fc.asyncProperty(configuration, async (options) => {
    const limit = rateLimiter(options)
    const server = createServer(async (request, response) => {
      if (await limit(request, response)) response.end('ok')
    })
    const url = await listen(server)
    const config = parseConfig(options, defaultFields)
    const findings = await verifyDeployment({ url, token: TOKEN, config, maxWaitMs: 2_500 })
    expect(findings.filter(({ status }) => status === 'problem')).toEqual([])
    for (const name of ['configuration', 'store', 'clock']) {
      expect(findings).toContainEqual(expect.objectContaining({ name, status: 'ok' }))
    }
    const policies = findings.filter(({ name }) => name.startsWith('policy-'))
    checked += policies.length
    proven += policies.filter(({ status }) => status === 'ok').length
    server.closeAllConnections()
    server.close()
  })
  await fc.assert(run, { numRuns: 100, endOnFailure: true })
  // A check that proves nothing raises no alarm either.
  expect(proven / checked).toBeGreaterThan(0.9)
})
