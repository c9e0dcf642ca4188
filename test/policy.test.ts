import { describe, expect, test } from 'vitest'
import { ConfigError } from '../src/errors.ts'
import { defineConfig, parseConfig } from '../src/policy.ts'

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

describe('a policy', () => {
  test('has every default filled in', () => {
    expect(parseConfig({ policies: [valid] })).toEqual({
      origin: undefined,
      subjects: 'hashed',
      degradedField: false,
      originTimeoutMs: 60_000,
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
          match: {},
          cost: 1,
          mode: 'enforce',
          deadlineMs: 300,
          onStoreError: 'allow',
          localShare: 0.25,
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
      match: { path: ['/a'], method: ['GET', 'POST'] },
    })
  })

  test('calls the leaky bucket by its other name, and gives buckets their own burst', () => {
    const [leaky, token] = parseConfig({
      policies: [
        { ...valid, algorithm: 'leaky-bucket' },
        { ...valid, name: 'b', algorithm: 'token-bucket' },
      ],
    }).policies
    expect(leaky).toMatchObject({ algorithm: 'gcra', burst: 1 })
    expect(token).toMatchObject({ algorithm: 'token-bucket', burst: 5 })
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

describe('a problem names path, expected and got', () => {
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
      'algorithm: one of fixed-window, sliding-window, sliding-log, token-bucket, gcra, leaky-bucket | "fixed"',
    ],
    [{ limit: 0 }, 'limit: a whole number of at least 1 | 0'],
    [{ limit: 1.5 }, 'limit: a whole number of at least 1 | 1.5'],
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
    [{ key: 'cookie' }, 'key[0]: "ip", { ip: { v4, v6 } } or "header:<name>" | "cookie"'],
    [
      { key: ['ip', 'header:a b'] },
      'key[1]: "ip", { ip: { v4, v6 } } or "header:<name>" | "header:a b"',
    ],
    [{ key: [] }, 'key: at least one | []'],
    [{ key: { ip: { v6: 129 } } }, 'key[0].ip.v6: a whole number from 1 to 128 | 129'],
    [{ match: 'x' }, 'match: an object | "x"'],
    [{ match: { path: '' } }, 'match.path[0]: a path like "/login", "/users/:id" or "/api/*" | ""'],
    [
      { match: { path: 'login' } },
      'match.path[0]: a path like "/login", "/users/:id" or "/api/*" | "login"',
    ],
    [
      { match: { path: ['/a', '/*/b'] } },
      'match.path[1]: a path like "/login", "/users/:id" or "/api/*" | "/*/b"',
    ],
    [
      { match: { host: 'https://a.b' } },
      'match.host[0]: a host like "api.example.com" or "*.example.com" | "https://a.b"',
    ],
    [{ match: { method: 'GET POST' } }, 'match.method[0]: a method like "POST" | "GET POST"'],
    [{ match: { methods: 'GET' } }, 'match.methods: one of the fields host, path, method | "GET"'],
    [{ cost: -1 }, 'cost: a whole number of at least 0 | -1'],
    [{ mode: 'dry-run' }, 'mode: one of enforce, shadow | "dry-run"'],
    [{ onStoreError: 'open' }, 'onStoreError: one of allow, deny, local | "open"'],
    [{ localShare: 0 }, 'localShare: a number above 0 and at most 1 | 0'],
    [{ localShare: 1.5 }, 'localShare: a number above 0 and at most 1 | 1.5'],
    [{ deadline: 'soon' }, 'deadline: a duration like "10s", or whole milliseconds | "soon"'],
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
      'orgin: one of the fields origin, originTimeout, policies, deadline, subjects, degradedField | "x"',
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
    [{ policies: [], subjects: 'clear' }, 'subjects: one of hashed, plain | "clear"'],
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
