import { describe, expect, test } from 'vitest'
import { createLineMatcher } from '../../../dev/replay/decide/matcher.ts'
import { createReplayer } from '../../../dev/replay/decide/replayer.ts'
import type { Fact } from '../../../dev/replay/line.ts'
import type { ConfigOptions, PolicyOptions } from '../../../src/config/options.ts'
import { parseConfig } from '../../../src/config/parse.ts'
import { jwt } from '../../../src/jwt/index.ts'
import { leases } from '../../../src/leases/index.ts'
import { lineAt } from '../../support/replay.ts'

const combined: Fact[] = ['ip', 'status', 'query', 'header:user-agent', 'header:referer']
const policy: PolicyOptions = { name: 'p', limit: 1, window: '1m' }

const matcherOf = (config: ConfigOptions, facts = combined) =>
  createLineMatcher(parseConfig(config), new Set(facts))

/** The reason why this policy is not replayed. */
const reason = (fields: Partial<PolicyOptions>, facts = combined) =>
  matcherOf(
    {
      policies: [{ ...policy, ...fields } as PolicyOptions],
      jwt: jwt({ secret: 'JWT_SECRET', algorithms: ['HS256'] }),
    },
    facts,
  ).notReplayed.map((one) => one.reason)

describe('A policy that the log cannot replay', () => {
  test.each<[part: string, fact: string, option: string, Partial<PolicyOptions>, Fact[]?]>([
    ['key', 'header x-user', 'map header:x-user=FIELD', { key: 'header:X-User' }],
    ['key', 'cookie session', 'map header:cookie=FIELD', { key: 'cookie:session' }],
    ['match', 'host', 'host NAME or --map host=FIELD', { match: { not: { host: 'a.example' } } }],
    ['match', 'country of the client', 'map country=FIELD', { match: { country: 'DE' } }],
    [
      'plan',
      'header x-plan',
      'map header:x-plan=FIELD',
      { plan: 'header:x-plan', limits: { pro: 5 } },
    ],
    [
      'onMissingKey',
      'network of the client',
      'map asn=FIELD',
      { key: 'header:user-agent', onMissingKey: { key: 'asn' } },
    ],
    [
      'cost',
      'header x-bulk',
      'map header:x-bulk=FIELD',
      { cost: [{ header: { 'x-bulk': true }, cost: 5 }] },
    ],
    ['key', 'address of the client', 'map ip=FIELD', {}, []],
    [
      'countOnly',
      'status of the response',
      'map status=FIELD',
      { key: 'global', countOnly: 401 },
      [],
    ],
  ])('is reported if its %s reads the %s: --%s.', (part, fact, option, fields, facts) => {
    expect(reason(fields, facts)).toEqual([
      `its ${part} reads the ${fact}, which the log does not have (--${option})`,
    ])
  })

  test.each<[string, Partial<PolicyOptions>]>([
    [
      'its limit reads the claim rate of a token, and logs have no tokens',
      { limit: { claim: 'rate', max: 9, otherwise: 5 } },
    ],
    ['its key reads the claim sub of a token, and logs have no tokens', { key: 'jwt:sub' }],
    ['its key reads the API key, and logs have no keys', { key: 'api-key' }],
    [
      'its key reads the result of a function, which needs the context of the app',
      { key: () => 'x' },
    ],
    [
      'it counts concurrent requests, and a log does not say how long they ran',
      { algorithm: 'concurrency' },
    ],
  ])('is reported with the reason: %s.', (expected, fields) => {
    expect(reason(fields)).toEqual([expected])
  })

  test('is replayed if the log has the fact.', () => {
    expect(reason({ key: 'header:x-user' }, ['header:x-user'])).toEqual([])
    expect(reason({ key: 'header:host', match: { host: 'a.example' } }, ['host'])).toEqual([])
    expect(reason({ key: ['ip', 'path', 'method', 'query:q', 'header:referer'] })).toEqual([])
  })

  test('is left out, while the others are replayed.', async () => {
    const config = parseConfig({
      policies: [policy, { ...policy, name: 'by-user', key: 'header:x-user' }],
      deny: [{ country: 'KP' }],
      allow: { name: 'monitor', header: { 'x-monitor': 'secret-of-the-monitor' } },
    })
    const replayer = await createReplayer(config, {
      facts: new Set(combined),
      wholeSeconds: false,
    })
    expect(replayer.notReplayed.map((one) => one.policy)).toEqual(['by-user', 'monitor', 'deny[0]'])
    const [first, second] = await replayer.decide([lineAt(0), lineAt(1)])
    expect(first!.spread).toEqual({
      allowed: true,
      by: 'policies',
      policies: ['p'],
      refusedBy: [],
      shadowRefusedBy: [],
    })
    expect(second!.spread.refusedBy).toEqual(['p'])
    expect(second!.burst).toBe(second!.spread)
    await replayer.close()
  })
})

test('The notes name what differs from the deployed Worker.', () => {
  const { notes, notReplayed } = matcherOf({
    policies: [
      { ...policy, name: 'login', countOnly: 401 },
      { ...policy, name: 'search', cost: { header: 'x-cost', response: 'x-price' } },
      { ...policy, name: 'busy', lease: { max: 10, ttl: '1s' } },
    ],
    leases: leases(),
    live: { from: 'redis' },
  })
  expect(notReplayed).toEqual([])
  expect(notes.map((note) => note.replace(/\..*/s, ''))).toEqual([
    'login: A response that does not count is refunded at once',
    'search: The cost in the response is not in the log, so the whole cost is charged',
    'search: The cost that a trusted proxy sets is not in the log, so requests cost what rules and otherwise say',
    'busy: Every request is decided exactly',
    'The live document is not read: the policies of the file are replayed',
  ])
})

test('Memory decides what it can decide exactly, and Redis the rest.', async () => {
  const log = { facts: new Set(combined), wholeSeconds: true }
  const engineOf = async (fields: Partial<PolicyOptions>, exact = false) => {
    const config = parseConfig({ policies: [{ ...policy, ...fields } as PolicyOptions] })
    const replayer = await createReplayer(config, log, { exact })
    await replayer.close()
    return replayer.engine
  }
  expect(await engineOf({})).toBe('memory')
  expect(await engineOf({ algorithm: 'sliding-log', countOnly: 401, penalty: 'manual' })).toBe(
    'memory',
  )
  expect(await engineOf({ algorithm: 'concurrency' })).toBe('memory') // it is left out
  expect(await engineOf({ penalty: { after: 2, within: '1s', ban: '1m' } })).toBe('redis')
  expect(await engineOf({}, true)).toBe('redis')
})
