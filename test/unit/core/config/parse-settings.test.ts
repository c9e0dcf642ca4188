import { describe, expect, test } from 'vitest'
import type { ConfigOptions } from '../../../../src/core/config/options.ts'
import { parseConfig } from '../../../../src/core/config/parse.ts'
import { setOf } from '../../../../src/core/respond/ratelimit-fields/sets.ts'
import { defaultFields } from '../../../../src/features/defaults.ts'
import { plans } from '../../../support/features.ts'
import { errorOf, KEY, problems, shield, valid } from '../../../support/parse.ts'

const SETS =
  'one of draft-11, draft-7, draft-6, github, an object with prefix and reset, or "off" outside of a list'

describe('settings other than policies', () => {
  test('A shield counts by address unless it has a key.', () => {
    const parsed = (change: object) =>
      parseConfig({ policies: [valid], shield: { ...shield, ...change } }, defaultFields).shield
    const ip = { source: 'ip', v4: 32, v6: 64 }
    const common = { binding: 'SHIELD', limit: 100, accept: [] }
    expect(parsed({})).toEqual({ ...common, periodMs: 10_000, key: [ip] })
    for (const period of ['1m', '60s', 60_000]) {
      expect(parsed({ period, key: ['ip', 'host'], accept: 'tight-shield' })).toEqual({
        ...{ ...common, periodMs: 60_000, key: [ip, { source: 'host' }], accept: ['tight-shield'] },
      })
    }
  })

  test('The default key of the live document contains the namespace.', () => {
    const parsed = (change: object) => parseConfig({ policies: [valid], ...change }, defaultFields)
    expect(parsed({}).namespace).toBeUndefined()
    expect(parsed({ namespace: 'shop-2' }).namespace).toBe('shop-2')
    const keyOf = (live: object, namespace?: string) => parsed({ live, namespace }).live!.key
    expect(keyOf({ from: 'redis' }, 'shop')).toBe('sluice:shop:live')
    expect(keyOf({ from: 'redis', key: 'a' }, 'shop')).toBe('a')
    expect(keyOf({ from: 'redis' })).toBe('sluice:live')
  })

  test('The option headers defaults to draft-11, and accepts one set, several sets or none.', () => {
    const parsed = (headers?: unknown) =>
      parseConfig({ policies: [], headers }, defaultFields).headers
    expect(parsed()).toEqual(['draft-11'])
    expect(parsed('github').map((set) => setOf(set).names[2])).toEqual(['x-ratelimit-used'])
    expect(parsed(['draft-7', { prefix: 'X-RateLimit-', reset: 'iso' }])).toHaveLength(2)
    expect([parsed('off'), parsed([])]).toEqual([[], []])
  })

  test('The live document comes from Redis or KV.', () => {
    const live = (live: object) => parseConfig({ policies: [valid], live }, defaultFields).live
    expect(live({ from: 'redis' })).toEqual({ from: 'redis', key: 'sluice:live', everyMs: 30_000 })
    expect(live({ from: 'kv:RULES', key: 'a', every: '1s' })).toEqual({
      ...{ from: 'kv:RULES', key: 'a', everyMs: 1000 },
    })
  })
})

describe('the problems of the configuration', () => {
  test.each<[object, unknown]>([
    [{ live: 'redis' }, 'live: an object | "redis"'],
    [{ live: { from: 'd1' } }, 'live.from: "redis" or "kv:<binding>" | "d1"'],
    [{ live: { from: 'redis', key: '' } }, 'live.key: a key of 1 to 512 characters | ""'],
    [
      { live: { from: 'redis', every: 0 } },
      'live.every: a duration like "10s", or whole milliseconds | 0',
    ],
    [{ tables: [] }, 'tables: an object of tables | []'],
    [
      { policies: [{ ...valid, limits: { a: 5 }, plan: { table: 'a' } }], tables: { a: {} } },
      expect.stringMatching(/^policies\[0\]\.plan\.key: .* \| nothing$/),
    ],
    [{ tables: { a: { b: 7 } } }, 'tables.a.b: a string | 7'],
    [
      { tables: { a: { constructor: 'pro' } } },
      'tables.a: names other than __proto__, prototype and constructor | {"constructor":"pro"}',
    ],
  ])('A configuration with %j is refused with one problem.', (change, problem) => {
    expect(problems({ policies: [], ...change })).toEqual([problem])
  })

  test.each<[unknown, string]>([
    [7, 'tables: an object of tables | 7'],
    [[], 'tables: an object of tables | []'],
    [{ customers: 7 }, 'tables.customers: an object of strings | 7'],
    [{ customers: { a: 7 } }, 'tables.customers.a: a string | 7'],
  ])('The tables %j are one problem, also if a policy names a table.', (tables, problem) => {
    const plan = { key: 'header:x-customer', table: 'customers' }
    const config = { policies: [{ ...valid, limits: { pro: 5 }, plan }], tables }
    expect(problems(config)).toEqual([problem])
    expect(problems({ ...config, use: [plans()] })).toEqual([problem])
  })

  test.each([
    [null, 'config: an object | null'],
    [[], 'config: an object | []'],
    [{}, 'policies: a list of policies | nothing'],
    [{ policies: {} }, 'policies: a list of policies | {}'],
    [{ policies: {}, tables: { a: {} } }, 'policies: a list of policies | {}'],
    [{ policies: [null] }, 'policies[0]: an object | null'],
    [{ policies: [valid, valid] }, 'policies[1].name: a name that no other policy has | "a"'],
    [
      { policies: [], orgin: 'x' },
      'orgin: one of the fields origin, originTimeout, policies, allow, deny, clientAddress, caseSensitivePaths, apiKeys, headers, cors, refusal, deadline, clock, denialCache, batching, store, unconfigured, namespace, use, expect, accept, live, tables, shield | "x"',
    ],
    [
      { policies: [], origin: 'example.com' },
      'origin: "zone" or a URL like "https://origin.example.com" | "example.com"',
    ],
    [
      { policies: [], origin: 'https://user:pass@x' },
      'origin: "zone" or a URL like "https://origin.example.com" | "https://user:pass@x"',
    ],
    [
      { policies: [], deadline: '0s' },
      'deadline: a duration like "10s", or whole milliseconds | "0s"',
    ],
    [
      { policies: [], originTimeout: 2 ** 31 },
      'originTimeout: a duration of less than 25 days | 2147483648',
    ],
    [{ policies: [], allow: { policies: 'a' } }, 'allow.policies: the name of a policy | "a"'],
    [
      { policies: [], deny: { ip: 'x' } },
      'deny.ip: an IP address, or a network without host bits like "203.0.113.0/24" | "x"',
    ],
    [
      { policies: [], jwt: { secret: 'S' } },
      expect.stringMatching(/^jwt: one of the fields origin, .* \| a value that may be secret$/),
    ],
    [
      { policies: [], apiKeys: { known: 'a-b' } },
      expect.stringMatching(/^apiKeys\.known: the name of a variable/),
    ],
    [{ policies: [], apiKeys: { from: [] } }, 'apiKeys.from: at least one value | []'],
    [
      { policies: [], apiKeys: { from: 'form:key' } },
      'apiKeys.from: "bearer", "header:<name>", "cookie:<name>" or "query:<name>" | "form:key"',
    ],
    [{ policies: [], headers: 'draft-12' }, `headers: ${SETS} | "draft-12"`],
    [{ policies: [], headers: ['draft-11', 'off'] }, `headers[1]: ${SETS} | "off"`],
    [
      { policies: [], headers: { prefix: 'X-', reset: 'soon' } },
      'headers.reset: one of epoch, delta, iso | "soon"',
    ],
    [
      { policies: [], headers: { prefix: 'X RateLimit', reset: 'iso' } },
      'headers.prefix: the start of a header name like "X-RateLimit-" | "X RateLimit"',
    ],
    ...(
      [
        ['draft-11', 'draft-7'],
        ['draft-7', 'draft-6'],
        ['draft-11', 'draft-11'],
        ['github', 'github'],
        ['github', { prefix: 'X-RateLimit-', reset: 'delta' }],
        ['draft-6', { prefix: 'RateLimit-', reset: 'epoch' }],
      ] satisfies ConfigOptions['headers'][]
    ).map((headers): [object, string] => [
      { policies: [], headers },
      `headers: sets that have no field in common | ${JSON.stringify(headers)}`,
    ]),
    [{ policies: [], shield: true }, 'shield: an object | true'],
    [
      { policies: [], shield: { ...shield, binding: 'a b' } },
      'shield.binding: the name of a binding like "SHIELD" | "a b"',
    ],
    [
      { policies: [], shield: { ...shield, limit: 0 } },
      'shield.limit: a whole number of at least 1 | 0',
    ],
    [
      { policies: [], shield: { ...shield, period: '30s' } },
      'shield.period: "10s" or "60s" | "30s"',
    ],
    [
      { policies: [], shield: { binding: 'SHIELD', limit: 5 } },
      'shield.period: "10s" or "60s" | nothing',
    ],
    [
      { policies: [], shield: { ...shield, key: ['ip', 'path'] } },
      'shield.key[1]: a part other than the path | "path"',
    ],
    [
      { policies: [], shield: { ...shield, key: ['ip', 'cookie'] } },
      `shield.key[1]: ${KEY} | "cookie"`,
    ],
    [
      { policies: [], shield: { ...shield, key: 'path:id' } },
      'shield.key: a part other than the path | "path:id"',
    ],
    [
      { policies: [], shield: { ...shield, mode: 'shadow' } },
      'shield.mode: one of the fields binding, limit, period, key, accept | "shadow"',
    ],
    [{ policies: [], batching: 1 }, 'batching: true or false | 1'],
    ...['', 'Shop', 'a:b', '{a}', 'a'.repeat(33)].map((namespace): [object, string] => [
      { policies: [], namespace },
      `namespace: 1 to 32 lower-case letters, digits and "-" | ${JSON.stringify(namespace)}`,
    ]),
  ])('The configuration %j is refused with one problem.', (config, problem) => {
    expect(problems(config)).toEqual([problem])
  })
})

describe('a table of plans by api-key', () => {
  const digest = 'ab'.repeat(32)
  const config = (customers: object, key = 'api-key') => ({
    policies: [
      {
        name: 'a',
        limit: 1,
        limits: { pro: 10 },
        plan: { key, table: 'customers' },
        window: '1m',
      },
    ],
    tables: { customers },
  })

  test.each([digest, digest.toUpperCase(), `sha256:${digest}`])(
    'A table accepts %s as the digest of an API key.',
    (name) => {
      expect(parseConfig(config({ [name]: 'pro' }), defaultFields).tables).toEqual({
        customers: { [digest]: 'pro' },
      })
    },
  )

  test('A table that contains an API key itself is refused with a message that explains how to hash it and does not show it.', () => {
    const parse = () =>
      parseConfig(config({ [digest]: 'pro', 'live-key-0001': 'pro' }), defaultFields)
    expect(parse).toThrow(/^tables\.customers: expected .*printf %s "\$KEY" \| sha256sum.*entry 2/)
    expect(parse).not.toThrow(/live-key/)
  })

  test('A table that is not looked up by API key keeps its names as written.', () => {
    const tables = { customers: { Acme: 'pro' } }
    expect(
      parseConfig(config(tables.customers, 'header:x-customer'), defaultFields).tables,
    ).toEqual(tables)
  })
})

test('A configuration cannot change after it is parsed, because a limiter would ignore the change.', () => {
  const options = { policies: [{ name: 'a', limit: 1, window: '1m' }] }
  expect(parseConfig(options)).toEqual(parseConfig(options))
  expect(() => options.policies.push(options.policies[0]!)).toThrow(TypeError)
  expect(() => {
    options.policies[0]!.limit = 2
  }).toThrow(TypeError)
})

test('Too many policies are a problem beside the problems of each.', () => {
  const policies = Array.from({ length: 129 }, (_, index) => ({
    name: `p${index}`,
    limit: 1,
    window: '1m',
    ...(index === 0 && { algorithm: 'fixed-window', burst: 2 }),
  }))
  expect(
    errorOf(() => parseConfig({ policies }))!.problems.map(({ path, expected }) => [
      path,
      expected,
    ]),
  ).toEqual([
    ['policies[0].burst', 'no value (fixed-window has no burst)'],
    ['policies', 'at most 128 policies'],
  ])
})
