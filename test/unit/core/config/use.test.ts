/** Features: a field that needs one names the import, and what to write in `use`. */

import { describe, expect, test } from 'vitest'
import type { PolicyOptions } from '../../../../src/core/config/options.ts'
import { parseConfig } from '../../../../src/core/config/parse.ts'
import { operations } from '../../../../src/core/decide/operate.ts'
import { bodies } from '../../../../src/features/bodies/index.ts'
import { coreParts } from '../../../../src/features/core-parts.ts'
import { defaultFields, defaults } from '../../../../src/features/defaults.ts'
import { jwt } from '../../../../src/features/jwt/index.ts'
import { turns } from '../../../../src/features/turns/index.ts'
import { createAppLimiter } from '../../../../src/hosts/app/app-limiter.ts'
import { rateLimiter } from '../../../../src/hosts/app/middleware.ts'
import { createSluice } from '../../../../src/hosts/app/sluice.ts'
import { fastifyRateLimiter } from '../../../../src/hosts/node/fastify.ts'
import { rateLimitProxy } from '../../../../src/hosts/node/next.ts'
import { rateLimiter as ofNode } from '../../../../src/hosts/node/node.ts'
import { createGateway } from '../../../../src/hosts/worker/gateway.ts'
import { leases } from '../../../support/features.ts'
import { errorOf, problems, shield, valid } from '../../../support/parse.ts'

const limit = { claim: 'rate', max: 9, otherwise: 1 }
const lease = { max: 10, ttl: '1s' } as const
const made = { jwt: jwt({ secret: 'JWT_SECRET' }), bodies: bodies() }
const all = Object.values(made)

const problemsIn = (start: () => unknown) =>
  (errorOf(start)?.problems ?? []).map(({ path, expected }) => `${path}: ${expected}`)
/** The problems of a limiter inside of an app, as "path: expected". */
const problemsOfApp = (config: object) => problemsIn(() => createAppLimiter(config as never))
const needed = (name: string) => `use: [${name}()], with import { ${name} } from 'sluice/features'`

test.each<[keyof typeof made, string, object, object?]>([
  ['jwt', 'policies[0].key', { key: 'jwt:sub' }],
  ['jwt', 'policies[0].key', { key: ['ip', 'jwt:sub'] }],
  ['jwt', 'policies[0].onMissingKey', { onMissingKey: { key: 'jwt:sub' } }],
  ['jwt', 'policies[0].plan', { limits: { pro: 9 }, plan: 'jwt:plan' }],
  [
    'jwt',
    'policies[0].plan',
    { limits: { pro: 9 }, plan: { key: 'jwt:sub', table: 'a' } },
    { tables: { a: {} } },
  ],
  ['jwt', 'policies[0].limit', { limit }],
  ['jwt', 'shield.key', {}, { shield: { ...shield, key: 'jwt:sub' } }],
  ['bodies', 'policies[0].key', { key: 'body:params.name' }],
  ['bodies', 'policies[0].match', { match: { body: { method: 'call' } } }],
  ['bodies', 'policies[0].cost', { cost: { usage: 'tokens', max: 9 } }],
  ['bodies', 'policies[0].reserve', { reserve: [{ match: { body: { a: true } }, share: 0.5 }] }],
  ['bodies', 'allow', {}, { allow: { body: { a: true } } }],
])('Without %s() the error of an app names %s.', (name, path, policy, rest = {}) => {
  const config = { policies: [{ ...valid, ...policy }], ...rest }
  expect(problemsOfApp(config)).toEqual([`${path}: ${needed(name)}`])
  expect(problemsOfApp({ ...config, use: all.filter((one) => one !== made[name]) })).toEqual([
    `${path}: ${needed(name)}`,
  ])
  if (path !== 'allow') expect(problemsOfApp({ ...config, use: all })).toEqual([])
})

describe('A field of a feature without parameters works when it is written', () => {
  const hosts: Record<string, (options: never) => unknown> = {
    createGateway,
    createSluice,
    rateLimiter,
    'rateLimiter of sluice/node': ofNode,
    fastifyRateLimiter,
    rateLimitProxy,
  }
  const written: Record<string, [policy: object, rest?: object, cannot?: string]> = {
    bans: [{ penalty: { after: 1, within: '1m', ban: '1h', list: true } }],
    concurrency: [{ algorithm: 'concurrency' }, {}, 'rateLimitProxy'],
    distinct: [{ distinct: 'header:x-user' }],
    headerSets: [{}, { headers: ['draft-11', 'github'] }],
    leases: [{ lease }],
    live: [{}, { live: { from: 'redis' } }],
    overrides: [{ overrides: true }],
    plans: [
      { limits: { pro: 9 }, plan: { key: 'header:x-tenant', table: 'a' } },
      { tables: { a: { b: 'pro' } } },
    ],
    proxies: [{}, { clientAddress: { forwardedFor: { trustedProxies: ['private'] } } }],
    refusals: [{ refusal: { status: 503 } }, { refusal: { status: 503 } }],
    shield: [{}, { shield }],
    slidingLog: [{ algorithm: 'sliding-log' }],
    turns: [{ wait: '1s' }],
  }

  test('These are all features that hosts have by default.', () => {
    expect(Object.keys(written)).toEqual(defaultFields.map(({ name }) => name))
    expect(defaults().map(({ name }) => name)).toEqual([
      ...Object.keys(written),
      ...coreParts().map(({ name }) => name),
    ])
  })

  test.each(Object.entries(written))('%s', (_, [policy, rest = {}, cannot]) => {
    const options = {
      clientAddress: 'socket',
      unconfigured: 'local',
      policies: [{ ...valid, ...policy }],
      ...rest,
    }
    for (const [name, start] of Object.entries(hosts)) {
      if (name !== cannot)
        expect([name, problemsIn(() => start(options as never))]).toEqual([name, []])
    }
  })

  test('In `use` it replaces the one of the host.', () => {
    const policies = [{ ...valid, wait: '1s' }]
    for (const use of [[turns({ maxWaiting: 5 })], defaults()]) {
      for (const start of Object.values(hosts)) {
        const options = { clientAddress: 'socket', unconfigured: 'local', policies, use }
        expect(problemsIn(() => start(options as never))).toEqual([])
      }
    }
  })

  test('Without its field it has no stage.', () => {
    const { config, stages } = createAppLimiter({ policies: [valid] })
    for (const { name, compile } of defaults().filter(({ name }) => name in written))
      expect([name, compile({ config, log: () => {} })]).toEqual([name, {}])
    // The calls of the door are always there: they reset and refund.
    expect(stages).toMatchObject({ endpoints: [], lua: [operations] })
  })
})

test('Each missing feature is one error, at the first field that needs it.', () => {
  const policies = [valid, { ...valid, name: 'b', cost: { usage: 'tokens', max: 9 } }].flatMap(
    (one) => [one, { ...one, name: `${one.name}-2`, key: 'jwt:sub' }],
  )
  expect(problemsOfApp({ policies, use: [made.bodies] })).toEqual([
    `policies[1].key: ${needed('jwt')}`,
  ])
  expect(problemsOfApp({ policies, use: [made.jwt] })).toEqual([
    `policies[2].cost: ${needed('bodies')}`,
  ])
})

test('A policy with another problem still names the missing feature.', () => {
  const policies = [{ ...valid, key: 'jwt:sub', limit: 0 }]
  expect(problems({ policies })).toContainEqual(
    expect.stringContaining(`policies[0].key: ${needed('jwt')}`),
  )
})

describe('The gateway', () => {
  const policy: PolicyOptions = { ...valid, lease, overrides: true, refusal: { status: 503 } }

  test('Its own features check the configuration.', () => {
    const policies = [{ ...policy, refusal: { status: 200 } }]
    const error = errorOf(() => createGateway({ origin: 'zone', policies } as never))
    expect(error?.message).toBe(
      'policies[0].refusal.status: expected a whole number from 400 to 599 (200 only with body: "json-rpc" or "graphql"), got 200 (in "a")',
    )
  })
})

test('A text that names a claim needs no jwt().', () => {
  const refusal = () => new Response('"source":"jwt"')
  const match = { header: { 'x-a': '"source":"jwt"' } }
  expect(problems({ policies: [{ ...valid, match, refusal, key: 'header:jwt' }] })).toEqual([])
})

test.each([
  [[leases(), leases()], 'use[1]: leases() once'],
  [[leases], 'use[0]: a feature: write leases()'],
  [['leases'], "use[0]: a feature, such as observe() from 'sluice/features'"],
  [leases(), 'use: a list of features'],
])('The list of features %j is refused.', (use, problem) => {
  expect(problems({ policies: [valid], use })).toEqual([expect.stringContaining(problem)])
})

test('Features are not changed by the parser.', () => {
  const use = [leases()]
  expect(parseConfig({ policies: [valid], use }).use).toEqual(use)
})
