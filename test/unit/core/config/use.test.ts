/** Features: a field that needs one names the import, and what to write in `use`. */
import { describe, expect, test } from 'vitest'
import type { ConfigOptions, PolicyOptions } from '../../../../src/core/config/options.ts'
import { parseConfig } from '../../../../src/core/config/parse.ts'
import { bans } from '../../../../src/features/bans/index.ts'
import { bodies } from '../../../../src/features/bodies/index.ts'
import { concurrency } from '../../../../src/features/concurrency/index.ts'
import { headerSets } from '../../../../src/features/header-sets/index.ts'
import { jwt } from '../../../../src/features/jwt/index.ts'
import { leases } from '../../../../src/features/leases/index.ts'
import { live } from '../../../../src/features/live/index.ts'
import { overrides } from '../../../../src/features/overrides/index.ts'
import { plans } from '../../../../src/features/plans/index.ts'
import { refusals } from '../../../../src/features/refusals/index.ts'
import { shield as shieldFeature } from '../../../../src/features/shield/index.ts'
import { slidingLog } from '../../../../src/features/sliding-log/index.ts'
import { createAppLimiter } from '../../../../src/hosts/app/app-limiter.ts'
import { createGateway } from '../../../../src/hosts/worker/gateway.ts'
import { errorOf, problems, shield, valid } from '../../../support/parse.ts'

const limit = { claim: 'rate', max: 9, otherwise: 1 }
const lease = { max: 10, ttl: '1s' } as const
const made = {
  jwt: jwt({ secret: 'JWT_SECRET' }),
  bans: bans(),
  bodies: bodies(),
  concurrency: concurrency(),
  headerSets: headerSets(),
  leases: leases(),
  live: live(),
  overrides: overrides(),
  plans: plans(),
  refusals: refusals(),
  shield: shieldFeature(),
  slidingLog: slidingLog(),
}
const all = Object.values(made)

/** The problems of a limiter inside of an app, as "path: expected". */
const problemsOfApp = (config: object) =>
  (errorOf(() => createAppLimiter(config as never))?.problems ?? []).map(
    ({ path, expected }) => `${path}: ${expected}`,
  )
const entries: Record<string, string> = { slidingLog: 'sliding-log', headerSets: 'header-sets' }
const needed = (name: string) =>
  `use: [${name}()], with import { ${name} } from 'sluice/${entries[name] ?? name}'`

test.each<[keyof typeof made, string, object, object?]>([
  ['jwt', 'policies[0].key', { key: 'jwt:sub' }],
  ['jwt', 'policies[0].key', { key: ['ip', 'jwt:sub'] }],
  ['jwt', 'policies[0].onMissingKey', { onMissingKey: { key: 'jwt:sub' } }],
  ['jwt', 'policies[0].plan', { limits: { pro: 9 }, plan: 'jwt:plan' }, { use: [plans()] }],
  [
    'jwt',
    'policies[0].plan',
    { limits: { pro: 9 }, plan: { key: 'jwt:sub', table: 'a' } },
    { tables: { a: {} }, use: [plans()] },
  ],
  ['jwt', 'policies[0].limit', { limit }],
  ['bodies', 'policies[0].key', { key: 'body:params.name' }],
  ['bodies', 'policies[0].match', { match: { body: { method: 'call' } } }],
  ['bodies', 'policies[0].cost', { cost: { usage: 'tokens', max: 9 } }],
  ['bodies', 'policies[0].reserve', { reserve: [{ match: { body: { a: true } }, share: 0.5 }] }],
  ['bodies', 'allow', {}, { allow: { body: { a: true } } }],
  ['bans', 'policies[0].penalty', { penalty: 'manual' }],
  ['plans', 'policies[0].limits', { limits: { pro: 9 }, plan: 'header:x-plan' }],
  ['plans', 'tables', {}, { tables: { a: { b: 'pro' } } }],
  ['concurrency', 'policies[0].algorithm', { algorithm: 'concurrency' }],
  ['headerSets', 'headers', {}, { headers: ['draft-11', 'github'] }],
  ['leases', 'policies[0].lease', { lease }],
  ['live', 'live', {}, { live: { from: 'redis' } }],
  ['shield', 'shield', {}, { shield }],
  ['slidingLog', 'policies[0].algorithm', { algorithm: 'sliding-log' }],
  ['overrides', 'policies[0].overrides', { overrides: true }],
  ['refusals', 'policies[0].refusal', { refusal: { status: 503 } }],
  ['refusals', 'refusal', {}, { refusal: { status: 503 } }],
])('Without %s() the error of an app names %s.', (name, path, policy, rest = {}) => {
  const config = { policies: [{ ...valid, ...policy }], ...rest }
  expect(problemsOfApp(config)).toEqual([`${path}: ${needed(name)}`])
  expect(problemsOfApp({ ...config, use: all.filter((one) => one !== made[name]) })).toEqual([
    `${path}: ${needed(name)}`,
  ])
  if (path !== 'allow') expect(problemsOfApp({ ...config, use: all })).toEqual([])
})

test('The set draft-11 is there once, also without headerSets().', () => {
  const config = { policies: [], headers: ['draft-11', 'draft-11'] }
  const problem = 'headers: sets that have no field in common'
  expect(problemsOfApp(config)).toEqual([problem])
  expect(problemsOfApp({ ...config, use: all })).toEqual([problem])
})

test('The key of the shield needs jwt(), too.', () => {
  const config = { policies: [valid], shield: { ...shield, key: 'jwt:sub' } }
  expect(problemsOfApp({ ...config, use: [made.shield] })).toEqual([`shield.key: ${needed('jwt')}`])
})

test('Each missing feature is one error, at the first field that needs it.', () => {
  const policies = [valid, { ...valid, name: 'b', lease, key: 'jwt:sub' }].flatMap((one) => [
    one,
    { ...one, name: `${one.name}-2`, overrides: true },
  ])
  expect(problemsOfApp({ policies })).toEqual([`policies[2].key: ${needed('jwt')}`])
  expect(problemsOfApp({ policies, use: [made.jwt] })).toEqual([
    `policies[1].overrides: ${needed('overrides')}`,
    `policies[2].lease: ${needed('leases')}`,
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

  test('It has leases(), overrides() and refusals() by default, and takes them from `use`, too.', () => {
    const config: ConfigOptions = { origin: 'zone', policies: [policy] }
    expect(errorOf(() => createGateway(config))).toBeUndefined()
    expect(errorOf(() => createGateway({ ...config, use: [leases(), refusals()] }))).toBeUndefined()
  })

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
  [['leases'], "use[0]: a feature, such as leases() from 'sluice/leases'"],
  [leases(), 'use: a list of features'],
])('The list of features %j is refused.', (use, problem) => {
  expect(problems({ policies: [valid], use })).toEqual([expect.stringContaining(problem)])
})

test('Features are not changed by the parser.', () => {
  const use = [leases()]
  expect(parseConfig({ policies: [valid], use }).use).toEqual(use)
})
