import { describe, expect, expectTypeOf, test } from 'vitest'
import type { Duration } from '../../../src/base/duration.ts'
import { ConfigError } from '../../../src/base/errors.ts'
import { tagOf } from '../../../src/base/tag.ts'
import { findingCodes } from '../../../src/config/findings.ts'
import type { ConfigOptions } from '../../../src/config/options.ts'
import { defineConfig, parseConfig } from '../../../src/config/parse.ts'

const KEY =
  '"ip", { ip: { v4, v6 } }, "path", "method", "host", "country", "asn", "colo", "api-key", "global", "path:<parameter>", "header:<name>", "cookie:<name>", "query:<name>", "jwt:<claim>", or a function'

const shield = { binding: 'SHIELD', limit: 100, period: '10s' } as const
const valid = { name: 'a', limit: 5, window: '10s' } as const

/** The problems of a configuration as "path: expected | got". */
function problems(config: unknown): string[] {
  try {
    parseConfig(config)
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError)
    return (error as ConfigError).problems.map(
      ({ path, expected, got }) => `${path}: ${expected} | ${got}`,
    )
  }
  return []
}

/** The problems of one policy, with `change` made to a valid one; paths without `policies[0].`. */
const problemsOf = (change: object) =>
  problems({ policies: [{ ...valid, ...change }] }).map((line) =>
    line.replace(/^policies\[0\]\.?/, ''),
  )

test('the types of a configuration accept what is right and refuse a wrong literal', () => {
  const key = (context: { user: string }) => context.user
  const written: ConfigOptions<{ user: string }> = {
    policies: [{ ...valid, key: ['ip', key], countOnly: '4xx', plan: { key, table: 'plans' } }],
    shield: { ...shield, key },
  }
  expectTypeOf(written.policies[0]!.limit).toEqualTypeOf<number>()
  expectTypeOf(written.deadline).toEqualTypeOf<Duration | undefined>()
  const policies = [
    // @ts-expect-error
    { ...valid, window: '10 minuts' },
    // @ts-expect-error
    { ...valid, key: 'headr:x-plan' },
    // @ts-expect-error
    { ...valid, match: { hots: 'www.example.com' } },
    // @ts-expect-error
    { ...valid, key: (context: { cookies: string }) => context.cookies },
    // @ts-expect-error
    { name: 'a', window: '10s' },
  ] satisfies ConfigOptions<{ user: string }>['policies']
  for (const policy of policies.slice(0, 3))
    expect(problems({ policies: [policy] })).toHaveLength(1)
})

describe('a policy', () => {
  test('has every default filled in', () => {
    expect(parseConfig({ policies: [valid] })).toEqual({
      origin: undefined,
      clock: 'store',
      api: undefined,
      denialCache: true,
      batching: true,
      shards: undefined,
      namespace: undefined,
      hashKeys: true,
      degradedHeader: false,
      accept: [],
      originTimeoutMs: 60_000,
      deadlineMs: 300,
      allow: [],
      deny: [],
      caseSensitivePaths: false,
      jwt: undefined,
      tables: {},
      live: undefined,
      apiKeys: {
        from: [
          { source: 'header', name: 'x-api-key' },
          { source: 'bearer', name: '' },
        ],
      },
      headers: ['draft-11'],
      cors: undefined,
      policies: [
        {
          name: 'a',
          tag: expect.stringMatching(/^[0-9a-z]{1,7}$/),
          algorithm: 'sliding-window',
          limit: 5,
          windowMs: 10_000,
          burst: 5,
          align: 'first-request',
          key: [{ source: 'ip', v4: 32, v6: 64 }],
          onMissingKey: 'share',
          match: {},
          cost: { header: undefined, response: undefined, rules: [], otherwise: 1 },
          calendar: undefined,
          plan: undefined,
          countOnly: undefined,
          penalty: undefined,
          lease: undefined,
          mode: 'enforce',
          check: 'before',
          deadlineMs: 300,
          onStoreError: 'local',
          localShare: 1,
          accept: [],
        },
      ],
    })
  })

  test('takes one value or a list for key and match', () => {
    const [policy] = parseConfig({
      policies: [
        {
          ...valid,
          key: ['ip', 'header:X-Api-Key', { ip: { v6: 56 } }],
          match: { path: '/a', method: ['GET', 'POST'] },
        },
      ],
    }).policies
    expect(policy).toMatchObject({
      key: [
        { source: 'ip', v4: 32, v6: 64 },
        { source: 'header', name: 'x-api-key' },
        { source: 'ip', v4: 32, v6: 56 },
      ],
      match: { path: ['/a'], method: ['GET', 'HEAD', 'POST'] },
    })
  })

  test('parses gcra and leaky-bucket as a token bucket whose burst defaults to 1, under the same tag', () => {
    const bucketOf = (algorithm: string, burst?: number) =>
      parseConfig({ policies: [{ ...valid, algorithm, burst }] }).policies[0]!
    const token = bucketOf('token-bucket')
    expect(token).toMatchObject({ algorithm: 'token-bucket', burst: 5 })
    for (const name of ['gcra', 'leaky-bucket']) {
      expect(bucketOf(name)).toEqual({ ...token, burst: 1 })
      expect(bucketOf(name, 5)).toEqual(token)
    }
  })

  test('reads no level of tokens, which an earlier version stored, as missing tokens', () => {
    const { tag } = parseConfig({ policies: [{ ...valid, algorithm: 'token-bucket' }] })
      .policies[0]!
    expect(tag).not.toBe(tagOf(valid.name, 'token-bucket', 10_000, 'first-request'))
  })

  test('has a tag that changes with name, algorithm, window and align, and with nothing else', () => {
    const tag = (change: object) =>
      parseConfig({ policies: [{ ...valid, ...change }] }).policies[0]!.tag
    const fixed = { algorithm: 'fixed-window' }
    expect(tag({ limit: 6, cost: 2, mode: 'shadow', key: 'header:a', match: { path: '/x' } })).toBe(
      tag({}),
    )
    const tags = [{}, { name: 'b' }, fixed, { window: '11s' }, { ...fixed, align: 'clock' }].map(
      tag,
    )
    expect(new Set(tags).size).toBe(5)
    expect(tag({ ...fixed, align: 'first-request' })).toBe(tag(fixed))
  })
})

describe('a policy that acts', () => {
  const parsed = (change: object, rest: object = {}) =>
    parseConfig({ ...rest, policies: [{ ...valid, ...change }] }).policies[0]!

  test('counts statuses, classes and ranges', () => {
    const counted = (countOnly: unknown) => parsed({ countOnly }).countOnly
    expect(counted(401)).toEqual([[401, 401]])
    expect(counted(['4xx', '5XX', '300-304', '200'])).toEqual([
      [400, 499],
      [500, 599],
      [300, 304],
      [200, 200],
    ])
  })

  test('bans for a day at most, or as long as it says', () => {
    const ban = (change: object) =>
      parsed({ penalty: { after: 3, within: '1m', ban: '10s', ...change } }).penalty
    const tag = expect.stringMatching(/^[0-9a-z]{1,7}$/)
    expect(ban({})).toEqual({ tag, after: 3, withinMs: 60_000, banMs: 10_000, maxMs: 86_400_000 })
    expect(ban({ ban: '2d' })?.maxMs).toBe(2 * 86_400_000)
    expect(ban({ max: '20s' })?.maxMs).toBe(20_000)
    expect(ban({})?.tag).not.toBe(parsed({}).tag)
  })

  test('has plans, told by a part as of a key, or by a table', () => {
    const plans = { limits: { free: 1, pro: 50 } }
    const key = { source: 'header', name: 'x-plan' }
    const common = { key, limits: plans.limits, burstIsLimit: true }
    expect(parsed({ ...plans, plan: 'header:X-Plan' }).plan).toEqual({
      ...common,
      table: undefined,
    })
    const tables = { customers: { acme: 'pro' } }
    const plan = { key: 'header:x-plan', table: 'customers' }
    expect(parsed({ ...plans, plan }, { tables }).plan).toEqual({ ...common, table: 'customers' })
    const bucket = { ...plans, plan: 'header:x-plan', algorithm: 'token-bucket' }
    expect(parsed({ ...bucket, burst: 5 }).plan?.burstIsLimit).toBe(false)
    expect(parsed({ ...bucket, algorithm: 'gcra' }).plan?.burstIsLimit).toBe(false)
  })

  test('has the window of a calendar, in UTC unless it says where', () => {
    const month = { algorithm: 'fixed-window', window: 'month' }
    expect(parsed(month)).toMatchObject({
      calendar: { unit: 'month', timeZone: 'UTC' },
      windowMs: 745 * 3_600_000,
    })
    const berlin = parsed({ ...month, timeZone: 'Europe/Berlin' })
    const tags = [parsed(month), berlin, parsed({ ...month, window: 'day' })].map(({ tag }) => tag)
    expect(new Set(tags).size).toBe(3)
  })

  test('has a shield before it, by address unless it says', () => {
    const parsed = (change: object) =>
      parseConfig({ policies: [valid], shield: { ...shield, ...change } }).shield
    const ip = { source: 'ip', v4: 32, v6: 64 }
    const common = { binding: 'SHIELD', limit: 100, accept: [] }
    expect(parsed({})).toEqual({ ...common, periodMs: 10_000, key: [ip] })
    for (const period of ['1m', '60s', 60_000]) {
      expect(parsed({ period, key: ['ip', 'host'], accept: 'tight-shield' })).toEqual({
        ...{ ...common, periodMs: 60_000, key: [ip, { source: 'host' }], accept: ['tight-shield'] },
      })
    }
  })

  test('has a namespace, which the key of its live document is in unless it says another', () => {
    const parsed = (change: object) => parseConfig({ policies: [valid], ...change })
    expect(parsed({}).namespace).toBeUndefined()
    expect(parsed({ namespace: 'shop-2' }).namespace).toBe('shop-2')
    const keyOf = (live: object, namespace?: string) => parsed({ live, namespace }).live!.key
    expect(keyOf({ from: 'redis' }, 'shop')).toBe('sluice:shop:live')
    expect(keyOf({ from: 'redis', key: 'a' }, 'shop')).toBe('a')
    expect(keyOf({ from: 'redis' })).toBe('sluice:live')
  })

  test('is read live from Redis or KV', () => {
    const live = (live: object) => parseConfig({ policies: [valid], live }).live
    expect(live({ from: 'redis' })).toEqual({ from: 'redis', key: 'sluice:live', everyMs: 30_000 })
    expect(live({ from: 'kv:RULES', key: 'a', every: '1s' })).toEqual({
      ...{ from: 'kv:RULES', key: 'a', everyMs: 1000 },
    })
  })
})

const STATUS = 'a status like 401, "4xx" or "400-403"'
const lease = { max: 10, ttl: '5s' }
const LEASE = '{"max":10,"ttl":"5s"}'
const penalty = { after: 3, within: '1m', ban: '10s' }
const plans = { limits: { pro: 50 }, plan: 'header:x-plan' }
const concurrency = { algorithm: 'concurrency' }

describe('a problem names path, expected and got', () => {
  test.each(['sliding-log', 'concurrency'])('more keys than one call takes: %s', (algorithm) => {
    const some = (count: number) => ({
      policies: Array.from({ length: count }, (_, index) => ({
        ...valid,
        name: `p${index}`,
        algorithm,
        penalty,
      })),
    })
    expect(parseConfig(some(64)).policies).toHaveLength(64)
    expect(problems(some(65))).toEqual([
      expect.stringMatching(
        /^policies: at most 128 policies, where sliding-log and concurrency with a penalty count twice \|/,
      ),
    ])
  })

  test.each([
    [{ countOnly: 'failures' }, `countOnly: ${STATUS} | "failures"`],
    [{ countOnly: [401, 600] }, `countOnly[1]: ${STATUS} | 600`],
    [{ countOnly: '403-401' }, `countOnly: ${STATUS} | "403-401"`],
    [{ countOnly: [] }, 'countOnly: at least one | []'],
    [{ countOnly: [[401]] }, `countOnly[0]: ${STATUS} | [401]`],
    [{ countOnly: [{ toString: 1 }] }, `countOnly[0]: ${STATUS} | {"toString":1}`],
    [
      { ...plans, plan: { key: 'header:a', table: { toString: 1 } } },
      'plan.table: the name of a table | {"toString":1}',
    ],
    [{ penalty: 3 }, 'penalty: an object | 3'],
    [{ penalty: { ...penalty, after: 0 } }, 'penalty.after: a whole number of at least 1 | 0'],
    [
      { penalty: { ...penalty, ban: undefined } },
      'penalty.ban: a duration like "10s", or whole milliseconds | nothing',
    ],
    [{ penalty: { ...penalty, max: '1s' } }, 'penalty.max: at least as long as ban | "1s"'],
    [
      { limits: { pro: 50 } },
      'plan: what tells the plan of a request, like "header:x-plan" | nothing',
    ],
    [{ plan: 'header:x-plan' }, 'limits: a limit for each plan | nothing'],
    [{ ...plans, limits: 7 }, 'limits: an object like { free: 100, pro: 5000 } | 7'],
    [{ ...plans, limits: { pro: 0 } }, 'limits.pro: a whole number of at least 1 | 0'],
    [
      { ...plans, limits: JSON.parse('{"__proto__":5}') },
      'limits: names other than __proto__, prototype and constructor | {"__proto__":5}',
    ],
    [
      { ...plans, limits: { big: 10_001 }, algorithm: 'sliding-log' },
      'limits.big: at most 10000 with sliding-log (sliding-window has no such bound) | 10001',
    ],
    [
      { ...plans, limits: { big: 2 ** 40 }, window: '7d' },
      'limits.big: at most 4964285 with this window | 1099511627776',
    ],
    [{ ...plans, plan: 'x-plan' }, `plan: ${KEY} | "x-plan"`],
    [{ ...plans, plan: 'path:tier' }, 'plan: a match.path with the parameter :tier | "path:tier"'],
    [
      { ...plans, plan: { key: 'header:a', table: 'customers' } },
      'plan.table: the name of a table in tables | "customers"',
    ],
    [
      { ...plans, plan: 'jwt:plan' },
      'plan: a jwt in the configuration, to verify its claims by | "jwt:plan"',
    ],
    [{ window: 'month' }, 'window: a duration (only fixed-window has calendar windows) | "month"'],
    [
      { timeZone: 'UTC' },
      'timeZone: nothing (only a window of a day, week or month has one) | "UTC"',
    ],
    [
      { algorithm: 'fixed-window', window: 'day', timeZone: 'Berlin' },
      'timeZone: a time zone like "Europe/Berlin" | "Berlin"',
    ],
    [
      { algorithm: 'fixed-window', window: 'day', align: 'clock' },
      'align: nothing (the calendar says when a window opens) | "clock"',
    ],
    [{ check: 'after' }, 'check: one of before, parallel | "after"'],
    [
      { ...concurrency, check: 'parallel' },
      'check: before (the origin is asked once there is a slot) | "parallel"',
    ],
    [{ ...concurrency, burst: 5 }, 'burst: nothing (concurrency has no burst) | 5'],
    [{ ...concurrency, limit: 10_001 }, 'limit: at most 10000 with concurrency | 10001'],
    [{ ...concurrency, countOnly: 401 }, 'countOnly: nothing (a slot ends with its request) | 401'],
    [
      { ...concurrency, cost: { response: 'x-price' } },
      'cost.response: nothing (a slot ends with its request) | "x-price"',
    ],
    [
      { ...concurrency, onStoreError: 'local' },
      'onStoreError: allow or deny (an isolate cannot count what is in flight elsewhere) | "local"',
    ],
    [{ lease: 10 }, 'lease: an object | 10'],
    [{ lease: { ...lease, max: 1 } }, 'lease.max: a whole number from 2 to 10000 | 1'],
    [{ lease: { ...lease, max: 10_001 } }, 'lease.max: a whole number from 2 to 10000 | 10001'],
    [{ lease: { max: 10 } }, 'lease.ttl: a duration like "10s", or whole milliseconds | nothing'],
    [{ lease: { ...lease, ttl: '61s' } }, 'lease.ttl: a duration of at most 60s | "61s"'],
    [
      { lease, algorithm: 'sliding-log' },
      `lease: nothing (sliding-log promises that no window has more than the limit) | ${LEASE}`,
    ],
    [{ ...concurrency, lease }, `lease: nothing (each slot is held by a request) | ${LEASE}`],
    [
      { lease, countOnly: 401 },
      `lease: nothing (what it costs is known after the answer) | ${LEASE}`,
    ],
    [
      { lease, cost: { response: 'x-price' } },
      `lease: nothing (what it costs is known after the answer) | ${LEASE}`,
    ],
    [{ lease, penalty }, `lease: nothing (a ban would not be seen) | ${LEASE}`],
    [{ lease, penalty: 'manual' }, `lease: nothing (a ban would not be seen) | ${LEASE}`],
    [{ cost: { response: 'a b' } }, 'cost.response: a field name like "Sluice-Cost" | "a b"'],
  ])('%j', (change, problem) => {
    expect(problemsOf(change)).toEqual([problem])
  })

  test.each([
    [{ live: 'redis' }, 'live: an object | "redis"'],
    [{ live: { from: 'd1' } }, 'live.from: "redis" or "kv:<binding>" | "d1"'],
    [{ live: { from: 'redis', key: '' } }, 'live.key: a name of 1 to 512 characters | ""'],
    [
      { live: { from: 'redis', every: 0 } },
      'live.every: a duration like "10s", or whole milliseconds | 0',
    ],
    [{ tables: [] }, 'tables: an object of tables | []'],
    [{ tables: { a: { b: 7 } } }, 'tables.a.b: a text | 7'],
    [
      { tables: { a: { constructor: 'pro' } } },
      'tables.a: names other than __proto__, prototype and constructor | {"constructor":"pro"}',
    ],
  ])('%j', (change, problem) => {
    expect(problems({ policies: [], ...change })).toEqual([problem])
  })

  test.each([
    [{ name: '' }, 'name: up to 64 letters, digits, "_", "." or "-" | ""'],
    [{ name: 'a b' }, 'name: up to 64 letters, digits, "_", "." or "-" | "a b"'],
    [
      { name: 'a'.repeat(65) },
      `name: up to 64 letters, digits, "_", "." or "-" | "${'a'.repeat(59)}…`,
    ],
    [{ name: 7 }, 'name: up to 64 letters, digits, "_", "." or "-" | 7'],
    [
      { algorithm: 'fixed' },
      'algorithm: one of fixed-window, sliding-window, sliding-log, concurrency, token-bucket, gcra, leaky-bucket | "fixed"',
    ],
    [{ algorithm: 'token', burst: 5 }, expect.stringMatching(/^algorithm: one of .* \| "token"$/)],
    [{ limit: 0 }, 'limit: a whole number of at least 1 | 0'],
    [{ limit: 1.5 }, 'limit: a whole number of at least 1 | 1.5'],
    [{ limit: 2 ** 52 }, 'limit: a whole number of at most 2251799813685248 | 4503599627370496'],
    [{ limit: NaN }, 'limit: a whole number of at least 1 | NaN'],
    [{ limit: '5' }, 'limit: a whole number of at least 1 | "5"'],
    [{ limit: undefined }, 'limit: a whole number of at least 1 | nothing'],
    [{ window: '10 minuts' }, 'window: a duration like "10s", or whole milliseconds | "10 minuts"'],
    [{ window: undefined }, 'window: a duration like "10s", or whole milliseconds | nothing'],
    [{ limit: 2 ** 40, window: '7d' }, 'limit: at most 4964285 with this window | 1099511627776'],
    [
      { algorithm: 'gcra', burst: 2 ** 40, window: '7d' },
      'burst: at most 4964285 with this window | 1099511627776',
    ],
    [
      { algorithm: 'sliding-log', limit: 10_001 },
      'limit: at most 10000 with sliding-log (sliding-window has no such bound) | 10001',
    ],
    [{ burst: 5 }, 'burst: nothing (sliding-window has no burst) | 5'],
    [{ algorithm: 'gcra', burst: 0 }, 'burst: a whole number of at least 1 | 0'],
    [{ align: 'clock' }, 'align: nothing (only fixed-window has an align) | "clock"'],
    [{ algorithm: 'fixed-window', align: 'noon' }, 'align: one of first-request, clock | "noon"'],
    [{ key: 'cookie' }, `key: ${KEY} | "cookie"`],
    [{ key: 7 }, `key: ${KEY} | 7`],
    [{ key: { ip: 7 } }, 'key.ip: an object | 7'],
    [
      { algorithm: 'fixed', window: 'day' },
      expect.stringMatching(/^algorithm: one of .* \| "fixed"$/),
    ],
    [
      { algorithm: 'fixed', align: 'clock' },
      expect.stringMatching(/^algorithm: one of .* \| "fixed"$/),
    ],
    [
      { algorithm: 'fixed-window', window: 'days', timeZone: 'Europe/Berlin' },
      'window: a duration like "10s", or whole milliseconds | "days"',
    ],
    [
      { key: 'path:id', match: { path: '/:id', host: 7 } },
      'match.host: a host like "api.example.com" or "*.example.com" | 7',
    ],
    [{ key: 'path:id' }, 'key: a match.path with the parameter :id | "path:id"'],
    [{ key: 'jwt:sub' }, 'key: a jwt in the configuration, to verify its claims by | "jwt:sub"'],
    [{ onMissingKey: 'ignore' }, 'onMissingKey: one of share, skip, refuse, { key } | "ignore"'],
    [{ onMissingKey: { key: 'x' } }, `onMissingKey.key: ${KEY} | "x"`],
    [
      { onMissingKey: { key: ['ip', 'path:id'] } },
      'onMissingKey.key[1]: a match.path with the parameter :id | "path:id"',
    ],
    [{ accept: 'all' }, `accept: one of ${findingCodes.join(', ')} | "all"`],
    [{ match: { country: 'Germany' } }, 'match.country: a country code like "DE" | "Germany"'],
    [
      { match: { ip: '10.0.0.1/8' } },
      'match.ip: an address, or a network without bits beyond its prefix like "203.0.113.0/24" | "10.0.0.1/8"',
    ],
    [
      { match: { header: 'x-a' } },
      'match.header: an object of field names like { "x-plan": "free" } | "x-a"',
    ],
    [
      { match: { header: { 'x a': true } } },
      'match.header: an object of field names like { "x-plan": "free" } | {"x a":true}',
    ],
    [
      { match: { header: { constructor: 'x' } } },
      'match.header: an object of field names like { "x-plan": "free" } | {"constructor":"x"}',
    ],
    [
      { match: { header: { 'x-a': 'a*b' } } },
      'match.header.x-a: true, or a text, with "*" at either end only, like "curl/*" | "a*b"',
    ],
    [
      { match: { not: { hots: 'a' } } },
      'match.not.hots: one of the fields host, path, method, header, country, ip, not | "a"',
    ],
    [
      { match: { path: '/:id/x/:id' } },
      'match.path: a path like "/login", "/users/:id" or "/api/*" | "/:id/x/:id"',
    ],
    [{ cost: [{ method: 'POST' }] }, 'cost[0].cost: a whole number of at least 0 | nothing'],
    [{ cost: { header: 'a b' } }, 'cost.header: a field name like "Sluice-Cost" | "a b"'],
    [{ key: ['ip', 'header:a b'] }, `key[1]: ${KEY} | "header:a b"`],
    [{ key: [] }, 'key: at least one | []'],
    [{ key: { ip: { v6: 129 } } }, 'key.ip.v6: a whole number from 1 to 128 | 129'],
    [{ match: 'x' }, 'match: an object | "x"'],
    [{ match: { path: '' } }, 'match.path: a path like "/login", "/users/:id" or "/api/*" | ""'],
    [
      { match: { path: 'login' } },
      'match.path: a path like "/login", "/users/:id" or "/api/*" | "login"',
    ],
    [
      { match: { path: ['/a', '/*/b'] } },
      'match.path[1]: a path like "/login", "/users/:id" or "/api/*" | "/*/b"',
    ],
    [
      { match: { host: 'https://a.b' } },
      'match.host: a host like "api.example.com" or "*.example.com" | "https://a.b"',
    ],
    [{ match: { method: 'GET POST' } }, 'match.method: a method like "POST" | "GET POST"'],
    [
      { match: { methods: 'GET' } },
      'match.methods: one of the fields host, path, method, header, country, ip, not | "GET"',
    ],
    [{ cost: -1 }, 'cost: a whole number of at least 0 | -1'],
    [{ mode: 'dry-run' }, 'mode: one of enforce, shadow | "dry-run"'],
    [{ onStoreError: 'open' }, 'onStoreError: one of allow, deny, local | "open"'],
    [{ localShare: 0 }, 'localShare: a number above 0 and at most 1 | 0'],
    [{ localShare: 1.5 }, 'localShare: a number above 0 and at most 1 | 1.5'],
    [{ deadline: 'soon' }, 'deadline: a duration like "10s", or whole milliseconds | "soon"'],
    [{ deadline: '30d' }, 'deadline: a duration of less than 25 days | "30d"'],
  ])('%j', (change, problem) => {
    expect(problemsOf(change)).toEqual([problem])
  })

  test.each([
    [null, 'config: an object | null'],
    [[], 'config: an object | []'],
    [{}, 'policies: a list of policies | nothing'],
    [{ policies: {} }, 'policies: a list of policies | {}'],
    [{ policies: [null] }, 'policies[0]: an object | null'],
    [{ policies: [valid, valid] }, 'policies[1].name: a name that no other policy has | "a"'],
    [
      { policies: [], orgin: 'x' },
      'orgin: one of the fields origin, originTimeout, policies, allow, deny, tables, live, api, caseSensitivePaths, jwt, apiKeys, headers, cors, deadline, clock, denialCache, shield, batching, shards, namespace, hashKeys, degradedHeader, accept | "x"',
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
      'deny.ip: an address, or a network without bits beyond its prefix like "203.0.113.0/24" | "x"',
    ],
    [{ policies: [], jwt: {} }, 'jwt.secret: one of secret and jwks | nothing'],
    [
      { policies: [], jwt: { secret: 'S', algorithms: 'RS256' } },
      'jwt.algorithms: one of HS256, HS384, HS512 | "RS256"',
    ],
    [
      { policies: [], jwt: { jwks: 'http://example.com/' } },
      'jwt.jwks: a URL like "https://issuer.example.com/.well-known/jwks.json" | "http://example.com/"',
    ],
    [
      { policies: [], apiKeys: { from: 'form:key' } },
      'apiKeys.from: "bearer", "header:<name>", "cookie:<name>" or "query:<name>" | "form:key"',
    ],
    [
      { policies: [], headers: 'draft-12' },
      'headers: one of draft-11, draft-7, draft-6, github, an object of prefix and reset, or "off" alone | "draft-12"',
    ],
    [
      { policies: [], headers: ['draft-11', 'draft-7'] },
      'headers: sets that have no field in common | ["draft-11","draft-7"]',
    ],
    [
      { policies: [], cors: { origins: '*', credentials: true } },
      'cors.origins: no "*" where credentials may be sent (browsers refuse it) | "*"',
    ],
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
      'shield.key[1]: nothing of the path | "path"',
    ],
    [
      { policies: [], shield: { ...shield, key: ['ip', 'cookie'] } },
      `shield.key[1]: ${KEY} | "cookie"`,
    ],
    [
      { policies: [], shield: { ...shield, key: 'path:id' } },
      'shield.key: nothing of the path | "path:id"',
    ],
    [
      { policies: [], shield: { ...shield, key: 'jwt:sub' } },
      'shield.key: a jwt in the configuration, to verify its claims by | "jwt:sub"',
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
    [{ policies: [], shards: 'eu-1' }, 'shards: a list of names | "eu-1"'],
    [{ policies: [], shards: ['eu-1'] }, 'shards: at least 2 names | ["eu-1"]'],
    [
      { policies: [], shards: Array.from({ length: 65 }, (_, n) => `n${n}`) },
      expect.stringMatching(/^shards: at most 64 names \| \["n0",/),
    ],
    [{ policies: [], shards: ['a', 'b', 'a'] }, 'shards[2]: a name that no other store has | "a"'],
    ...['EU-1', 'eu_1', '', 'a'.repeat(33), 1].map((name): [object, string] => [
      { policies: [], shards: ['a', name] },
      `shards[1]: 1 to 32 lower-case letters, digits and "-" | ${JSON.stringify(name)}`,
    ]),
    [{ policies: [], hashKeys: 'clear' }, 'hashKeys: true or false | "clear"'],
  ])('%j', (config, problem) => {
    expect(problems(config)).toEqual([problem])
  })

  test('all at once, a line each', () => {
    const config = {
      policies: [
        { name: 'a', limit: 0, windw: '1s' },
        { ...valid, cost: 'x' },
      ],
      origin: 7,
    }
    expect(problems(config).map((line) => line.split(':')[0])).toEqual([
      'origin',
      'policies[0].limit',
      'policies[0].window',
      'policies[0].windw',
      'policies[1].cost',
      'policies[1].name',
    ])
    expect(() => defineConfig(config as never)).toThrow(
      /^6 problems\n {2}origin: expected .*, got 7\n/,
    )
  })
})

describe('a problem shows the configuration as it was written', () => {
  const config = (change: object, rest: object = {}) => ({
    policies: [{ name: 'login', limit: 5, window: '1m', ...change }],
    ...rest,
  })
  const told = (input: unknown) => {
    try {
      parseConfig(input)
    } catch (error) {
      return (error as Error).message
    }
    return undefined
  }

  test('a single value has no index', () => {
    expect(told(config({ match: { path: 'a' } }))).toContain(
      'policies[0].match.path: expected a path',
    )
    expect(told(config({ match: { path: ['a'] } }))).toContain(
      'policies[0].match.path[0]: expected',
    )
    expect(told(config({ key: { ip: { v6: 129 } } }))).toContain('policies[0].key.ip.v6: expected')
    expect(told(config({}, { deny: { not: { ip: 'x' } } }))).toContain('deny.not.ip: expected')
    expect(told(config({ match: { header: { '0': '**' } } }))).toContain(
      'match.header[0]: expected',
    )
  })

  test('a value is shown as written, not as parsed', () => {
    expect(told(config({ key: 'jwt:sub' }))).toMatch(/^policies\[0\]\.key: .*, got "jwt:sub"/)
    expect(told(config({ limit: 2 ** 51, window: '1h' }))).toContain(', got 2251799813685248')
  })

  test('a regular expression, a bigint, and what JSON cannot hold are shown', () => {
    expect(told(config({ match: { path: /^\/api/i } }))).toContain('got /^\\/api/i')
    expect(told(config({ limit: 10n }))).toContain('got 10')
    const circle: Record<string, unknown> = {}
    circle.self = circle
    expect(told(config({ limit: circle }))).toContain('got object')
  })

  test('a policy and an entry are named', () => {
    expect(told(config({ window: '1x' }))).toBe(
      'policies[0].window: expected a duration like "10s", or whole milliseconds, got "1x" (in "login")',
    )
    expect(told(config({}, { deny: [{ name: 'abuse', ip: 'x' }] }))).toMatch(/\(in "abuse"\)$/)
    expect(told(config({}, { deny: { name: 'abuse', ip: 'x' } }))).toMatch(/\(in "abuse"\)$/)
    expect(told(config({ name: 'a b' }))).not.toContain('(in')
  })
})

describe('a secret in the configuration is refused, and never shown', () => {
  const policies = [{ name: 'a', limit: 1, window: '1m', key: 'jwt:sub' }]
  const message = (rest: object) => {
    try {
      parseConfig({ policies, ...rest })
    } catch (error) {
      return (error as Error).message
    }
    return ''
  }

  test.each([
    's3cr3tVALUE0123456789',
    's3cr3t-VALUE',
    'correcthorsebatterystaple',
    'DEADBEEFDEADBEEFDEADBEEFDEADBEEF',
    'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP',
    'jwt_secret',
  ])('%s', (secret) => {
    for (const rest of [
      { jwt: { secret } },
      { jwt: { secert: secret } },
      { jwt: secret },
      { jwt: { secret: 'JWT_SECRET' }, apiKeys: { known: secret } },
      { jwt: { secret: 'JWT_SECRET' }, apiKeys: secret },
    ]) {
      expect(message(rest)).toContain('expected')
      expect(message(rest)).not.toContain(secret)
    }
  })

  test.each(['JWT_SECRET', 'A', 'KEYS', 'JWT_SECRET_2027', 'AUTH0_SIGNING_SECRET_OF_PRODUCTION'])(
    '%s is the name of a variable',
    (secret) => expect(message({ jwt: { secret } })).toBe(''),
  )
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

  test.each([digest, digest.toUpperCase(), `sha256:${digest}`])('%s is a digest', (name) => {
    expect(parseConfig(config({ [name]: 'pro' })).tables).toEqual({
      customers: { [digest]: 'pro' },
    })
  })

  test('a key itself is refused with the way to its digest, and never shown', () => {
    const parse = () => parseConfig(config({ [digest]: 'pro', 'live-key-0001': 'pro' }))
    expect(parse).toThrow(/^tables\.customers: expected .*printf %s "\$KEY" \| sha256sum.*entry 2/)
    expect(parse).not.toThrow(/live-key/)
  })

  test('a table of something else keeps its names', () => {
    const tables = { customers: { Acme: 'pro' } }
    expect(parseConfig(config(tables.customers, 'header:x-customer')).tables).toEqual(tables)
  })
})
