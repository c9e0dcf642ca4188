import { describe, expect, test } from 'vitest'
import type { ConfigOptions, PolicyOptions } from '../../../../src/core/config/options.ts'
import { parseConfig } from '../../../../src/core/config/parse.ts'
import { stagesOf } from '../../../../src/core/feature.ts'
import { bodies } from '../../../../src/features/bodies/index.ts'
import { createMatcher } from '../../../support/create-matcher.ts'

const quota = { limit: 10, window: '1m' } as const
const call = (name: string, more: object = {}) => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name, ...more },
})

interface Sent {
  method?: string
  url?: string
  headers?: Record<string, string>
  /** Sent as it is, instead of JSON. */
  raw?: BodyInit
}

/** The quotas of a policy for a body, as `key: cost`, or why the policy does not apply. */
async function applied(
  policy: Partial<PolicyOptions>,
  body: unknown,
  { method = 'POST', url = '/mcp', headers, raw }: Sent = {},
  options: Partial<ConfigOptions> = {},
) {
  const match = createMatcher({
    policies: [{ name: 'p', ...quota, key: 'global', ...policy }],
    use: [bodies()],
    ...options,
  })
  const {
    denied,
    policies,
    unmet = [],
  } = await match(url, {
    method,
    headers: { 'content-type': 'application/json', ...headers },
    ...(method !== 'GET' && { body: raw ?? JSON.stringify(body), duplex: 'half' }),
  } as RequestInit)
  if (denied) return denied
  return [
    ...policies.map(
      ({ partitionKey, cost }) =>
        `${partitionKey.map(([, value, fault]) => value ?? fault ?? 'missing').join('+')}: ${cost}`,
    ),
    ...unmet.map((one) => `no: ${one.unmet === 'match' ? one.field : one.unmet}`),
  ]
}

describe("A key part { digest: 'body:<path>' }", () => {
  const key = { digest: 'body:params.arguments' } as const
  const digestOf = async (args: unknown) =>
    (await applied({ key }, call('search', { arguments: args }))) as string[]
  /** The digest of a text by a tool that shares no code: `printf '{"a":[1,2],"b":"x"}' | sha256sum`. */
  const known = 'd0f56dda38d34376527524ddd98f7ec117d5cbfb240f86e11bfb9d2d01a717d9'

  test('It is the SHA-256 of the canonical JSON, whatever the order of members and the spelling of numbers.', async () => {
    expect(await digestOf({ b: 'x', a: [1, 2] })).toEqual([`${known}: 1`])
    const raw =
      '{"method":"tools/call","params":{"arguments":{ "\\u0061" : [1.0, 20e-1], "b":"x" }}}'
    expect(await applied({ key }, undefined, { raw })).toEqual([`${known}: 1`])
  })

  test('Other values have other digests.', async () => {
    const values = [{ a: 1 }, { a: '1' }, { a: [1] }, [1], 1, '1', true, 'true', {}, [], '']
    const digests = await Promise.all(values.map(digestOf))
    expect(new Set(digests.flat()).size).toBe(values.length)
    for (const [digest] of digests) expect(digest).toMatch(/^[\da-f]{64}: 1$/)
  })

  test('An absent value and null are missing.', async () => {
    expect(await digestOf(undefined)).toEqual(['missing: 1'])
    expect(await digestOf(null)).toEqual(['missing: 1'])
  })

  test('A value without a canonical form is unreadable, as is a whole body.', async () => {
    const raw = '{"params":{"arguments":[1e400]}}'
    expect(await applied({ key }, undefined, { raw })).toEqual(['unreadable: 1'])
    expect(await applied({ key }, undefined, { raw: '{' })).toEqual(['unreadable: 1'])
  })

  test('Each call of a batch counts by its own digest.', async () => {
    const batch = [1, 2, 1].map((value) => call('search', { arguments: value }))
    const [one, two] = [await digestOf(1), await digestOf(2)]
    expect(await applied({ key }, batch)).toEqual([one[0]!.replace(': 1', ': 2'), two[0]])
  })

  test('Another source than the body, and a path in another notation, are refused.', () => {
    const parse = (key: unknown) => () =>
      parseConfig({ policies: [{ name: 'p', ...quota, key }], use: [bodies()] })
    expect(parse({ digest: 'header:a' })).toThrow(
      'policies[0].key.digest: expected a part like "body:params.arguments"',
    )
    expect(parse({ digest: 'body:$.a' })).toThrow('not "$.a"')
    expect(parse({ digest: 'body:a', ip: {} })).toThrow('policies[0].key.ip')
  })
})

describe('A key part body:<path>', () => {
  const key = 'body:params.name'

  test('A policy counts by a value of the body.', async () => {
    expect(await applied({ key }, call('search'))).toEqual(['search: 1'])
    for (const spelling of ['Search', ' search\n', 'ｓearch', 'sea\u200brch', 'séarch']) {
      expect(await applied({ key }, call(spelling))).toEqual(['search: 1'])
    }
    expect(await applied({ key: ['global', key] }, call('x'))).toEqual(['global+x: 1'])
    expect(await applied({ key: 'body:id' }, call('x'))).toEqual(['1: 1'])
    expect(
      await applied({ key: 'body:__proto__.a' }, 0, { raw: '{"__proto__":{"a":"b"}}' }),
    ).toEqual(['b: 1'])
  })

  test.each([
    ['an absent value', '{}'],
    ['null', '{"params":{"name":null}}'],
    ['an empty text', '{"params":{"name":""}}'],
    ['a body that is no object', '"params"'],
    ['an empty body', ''],
    ['an empty batch', '[]'],
  ])('The part is missing for %s.', async (_title, raw) => {
    expect(await applied({ key }, 0, { raw })).toEqual(['missing: 1'])
    expect(await applied({ key, onMissingKey: 'skip' }, 0, { raw })).toEqual(['no: key'])
    expect(await applied({ key, onMissingKey: 'refuse' }, 0, { raw })).toEqual({
      by: 'p',
      missing: key,
    })
  })

  const json = JSON.stringify(call('search'))
  test.each<[string, Sent, number?]>([
    ['a body that is not JSON', { raw: '{"params":{"name":"search"}' }],
    ['a duplicate key', { raw: '{"params":{"name":"search"},"x":{"a":1,"a":1}}' }],
    ['a key with another letter case', { raw: '{"Params":{"name":"search"}}' }],
    ['a list', { raw: '{"params":{"name":["search"]}}' }],
    ['a body above 64 KiB', { raw: JSON.stringify(call('x', { data: 'x'.repeat(65_536) })) }],
    ['invalid UTF-8', { raw: new Uint8Array([0x22, 0xff, 0x22]) }],
    ['a byte order mark', { raw: `\ufeff${json}` }],
    ['nesting of 65 levels', { raw: `${'['.repeat(65)}${']'.repeat(65)}` }],
    ['a batch of more than 100 calls', { raw: JSON.stringify(Array(101).fill(call('x'))) }, 101],
    ['another type', { raw: json, headers: { 'content-type': 'text/plain' } }],
    ['two types', { raw: json, headers: { 'content-type': 'application/json, text/plain' } }],
    [
      'another charset',
      { raw: json, headers: { 'content-type': 'application/json; charset=utf-16' } },
    ],
    ['a compressed body', { raw: json, headers: { 'content-encoding': 'gzip' } }],
    ['a length above the maximum', { raw: json, headers: { 'content-length': '99999999' } }],
  ])(
    'The part is unreadable for %s, and onMissingKey skip does not exempt it.',
    async (_title, sent, cost = 1) => {
      const counted = [`unreadable: ${cost}`]
      expect(await applied({ key }, 0, sent)).toEqual(counted)
      expect(await applied({ key, onMissingKey: 'skip' }, 0, sent)).toEqual(counted)
      expect(await applied({ key, onMissingKey: 'refuse' }, 0, sent)).toEqual({
        by: 'p',
        unreadable: key,
      })
      const other = { key: 'method' } as const
      expect(await applied({ key, onMissingKey: other }, 0, sent)).toEqual([`POST: ${cost}`])
    },
  )

  test.each([
    'application/json; charset=UTF-8',
    'application/json;charset="utf-8"',
    'application/vnd.api+json',
    'Application/JSON; profile=x',
  ])('A body with the type %s is read.', async (type) => {
    const headers = { 'content-type': type, 'content-encoding': 'identity' }
    expect(await applied({ key }, call('x'), { headers })).toEqual(['x: 1'])
  })

  test('A body that arrives after the timeout is unreadable, and does not hold the request.', async () => {
    const raw = new ReadableStream({
      start: (controller) => controller.enqueue(new Uint8Array([123])),
    })
    const options = { use: [bodies({ timeout: 30 })] }
    expect(await applied({ key }, 0, { raw }, options)).toEqual(['unreadable: 1'])
  })

  test('A body that fails in the middle is unreadable.', async () => {
    const raw = new ReadableStream({
      pull(controller) {
        controller.enqueue(new Uint8Array([123]))
        controller.error(new Error('hung up'))
      },
    })
    expect(await applied({ key }, 0, { raw })).toEqual(['unreadable: 1'])
  })

  test('A body that the app has read is unreadable.', async () => {
    const problemOf = (request: Request) => {
      const config = parseConfig({ policies: [], use: [bodies()] })
      return stagesOf({ config, log: () => {} }).bodyProblem!(request)
    }
    const request = new Request('http://a.test/', { method: 'POST', body: '{}' })
    await request.text()
    expect(await problemOf(request)).toMatch('type')
    request.headers.set('content-type', 'application/json')
    expect(await problemOf(request)).toBe('it was read before')
  })
})

describe('match.body', () => {
  const matches = async (body: PolicyOptions['match'], sent: unknown, options: Sent = {}) =>
    (await applied({ match: body! }, sent, options))[0 as never]

  test.each<[object, boolean]>([
    [{ method: 'tools/call' }, true],
    [{ method: 'Tools/CALL' }, true],
    [{ method: ['ping', 'tools/*'] }, true],
    [{ method: 'ping' }, false],
    [{ method: 'tools/call', 'params.name': 'sea*' }, true],
    [{ method: 'tools/call', 'params.name': 'x*' }, false],
    [{ 'params.name': true }, true],
    [{ params: true }, true],
    [{ 'params.other': true }, false],
    [{ id: '1' }, true],
    [{ params: 'x' }, true], // an object, which some servers convert to text
  ])('The condition %j matches a call of the tool "search": %j.', async (body, isMet) => {
    expect(await matches({ body } as never, call('search'))).toBe(isMet ? 'global: 1' : 'no: body')
    const not = isMet && !('params' in body && body.params === 'x') ? 'no: not' : 'global: 1'
    expect(await matches({ not: { body } } as never, call('search'))).toBe(not)
    expect(await matches({ not: { not: { body } } } as never, call('search'))).toBe(
      isMet ? 'global: 1' : 'no: not',
    )
  })

  test('A body that cannot be read matches, also in not, so that a client cannot evade a policy.', async () => {
    const unread = { raw: '{"method":"a","method":"b"}' }
    const body = { method: 'tools/call' }
    expect(await matches({ body }, 0, unread)).toBe('global: 1')
    expect(await matches({ not: { body } }, 0, unread)).toBe('global: 1')
    expect(await matches({ not: { path: '/mcp', not: { body } } }, 0, unread)).toBe('global: 1')
  })

  test('A request without a body does not match.', async () => {
    const body = { method: 'tools/call' }
    expect(await matches({ body }, 0, { method: 'GET' })).toBe('no: body')
    expect(await matches({ not: { body } }, 0, { method: 'GET' })).toBe('global: 1')
  })

  test('The body is read only if the other conditions match, and a GET without a body has none.', async () => {
    let reads = 0
    const counting = () =>
      new ReadableStream(
        {
          pull(controller) {
            reads += 1
            controller.enqueue(new TextEncoder().encode('{}'))
            controller.close()
          },
        },
        { highWaterMark: 0 },
      )
    const policy = { match: { path: '/other', body: { a: 'b' } } }
    expect(await applied(policy, 0, { raw: counting() })).toEqual(['no: path'])
    expect(
      await applied({ match: { not: { path: '/mcp' }, body: { a: 'b' } } }, 0, { raw: counting() }),
    ).toEqual(['no: not'])
    const allow = { allow: { path: '/mcp' } }
    expect(await applied({ key: 'body:a' }, 0, { raw: counting() }, allow)).toEqual(['no: allow'])
    expect(await applied({ key: 'body:a' }, 0, { raw: counting() }, { deny: {} })).toEqual({
      by: 'deny[0]',
    })
    expect(reads).toBe(0)
    expect(
      await applied({ match: { path: '/mcp', body: { a: 'b' } } }, 0, { raw: counting() }),
    ).toEqual(['no: body'])
    expect(reads).toBeGreaterThan(0)
  })
})

describe('A cost by the body', () => {
  const cost = async (cost: PolicyOptions['cost'], body: unknown, sent: Sent = {}) =>
    Number(String((await applied({ cost: cost! }, body, sent))[0 as never]).replace('global: ', ''))
  const tokens = { body: 'max_tokens', otherwise: 50, max: 400 }

  test.each([
    [100, 100],
    [99.2, 100],
    [400, 400],
    [9_000_000, 400],
    [0, 400],
    [-1, 400],
    ['100', 400],
    [[1], 400],
    [null, 50],
    [undefined, 50],
  ])('max_tokens %j costs %i units.', async (max_tokens, units) => {
    expect(await cost(tokens, { max_tokens })).toBe(units)
  })

  test('Without max, a number has no bound, and another value costs otherwise.', async () => {
    const unbounded = { body: 'max_tokens', otherwise: 50 }
    expect(await cost(unbounded, { max_tokens: 9_000_000 })).toBe(9_000_000)
    expect(await cost(unbounded, { max_tokens: 1e300 })).toBe(2 ** 51)
    expect(await cost(unbounded, { max_tokens: 'x' })).toBe(50)
  })

  test('A body that cannot be read costs max.', async () => {
    expect(await cost(tokens, 0, { raw: '{' })).toBe(400)
    const policy = { match: { body: { method: 'x' } }, cost: { max: 20 } }
    expect(await applied(policy, 0, { raw: '{' })).toEqual(['global: 20'])
    expect(await applied(policy, { method: 'x' })).toEqual(['global: 1'])
    expect(await cost(tokens, 0, { method: 'GET' })).toBe(50)
  })

  test('Rules take precedence, and a rule that cannot be compared does not make a request cheaper.', async () => {
    const rules = [
      { body: { model: 'small*' }, cost: 1 },
      { not: { body: { model: 'large*' } }, cost: 10 },
      { path: '/other', cost: 1_000_000 },
      { method: 'POST', cost: 100 },
      { cost: 10_000 },
    ]
    expect(await cost(rules, { model: 'Small-2' })).toBe(1)
    expect(await cost(rules, { model: 'medium' })).toBe(10)
    expect(await cost(rules, { model: 'large' })).toBe(100)
    expect(await cost(rules, { model: ['small'] })).toBe(100)
    expect(await cost(rules, 0, { raw: '{' })).toBe(100)
    const some = { rules: rules.slice(0, 2), otherwise: 30 }
    expect(await cost(some, 0, { raw: '{' })).toBe(30)
    expect(await cost({ ...some, max: 70 }, 0, { raw: '{' })).toBe(70)
    expect(await cost({ ...some, body: 'n' }, { model: 'large', n: 7 })).toBe(7)
  })
})

describe('A batch', () => {
  const tools: Partial<PolicyOptions> = {
    match: { body: { method: 'tools/call' } },
    key: ['global', 'body:params.name'],
  }

  test('Each call is charged, and the costs of one quota are added up.', async () => {
    const batch = [call('a'), call('b'), { method: 'ping' }, call('a'), { method: 'ping' }]
    expect(await applied(tools, batch)).toEqual(['global+a: 2', 'global+b: 1'])
    expect(await applied({ match: tools.match! }, batch)).toEqual(['global: 3'])
    expect(await applied({}, batch)).toEqual(['global: 1'])
    expect(await applied(tools, [{ method: 'ping' }, {}])).toEqual(['no: body'])
  })

  test('onMissingKey applies to each call.', async () => {
    const batch = [call('a'), { method: 'tools/call' }]
    expect(await applied(tools, batch)).toEqual(['global+a: 1', 'global+missing: 1'])
    expect(await applied({ ...tools, onMissingKey: 'skip' }, batch)).toEqual(['global+a: 1'])
    expect(await applied({ ...tools, onMissingKey: 'refuse' }, batch)).toEqual({
      by: 'p',
      missing: 'body:params.name',
    })
  })

  test('The cost of each call is read from its own body.', async () => {
    const cost = { body: 'params.size', max: 100 }
    const batch = [call('a', { size: 5 }), call('a', { size: 500 }), call('b')]
    expect(await applied({ ...tools, cost }, batch)).toEqual(['global+a: 105', 'global+b: 1'])
  })

  test('A batch with more quotas than fit into a call is counted in the shared quota, at its whole cost.', async () => {
    const batch = (size: number) =>
      Array.from({ length: size }, (_, index) => call(`tool-${index}`))
    expect(await applied(tools, batch(65))).toHaveLength(65)
    expect(await applied(tools, batch(66))).toEqual(['global+unreadable: 66'])
    expect(await applied({ ...tools, onMissingKey: 'refuse' }, batch(66))).toEqual({
      by: 'p',
      unreadable: 'body:params.name',
    })
  })

  test('A quota with two keys in Redis takes the room of two.', async () => {
    const batch = (size: number) =>
      Array.from({ length: size }, (_, index) => call(`tool-${index}`))
    const penalty = { after: 5, within: '1m', ban: '1h' } as const
    const logged: Partial<PolicyOptions> = { ...tools, algorithm: 'sliding-log', penalty }
    expect(await applied(logged, batch(33))).toHaveLength(33)
    expect(await applied(logged, batch(34))).toEqual(['global+unreadable: 34'])
  })

  test('Beside many policies a batch has the rest of the 128 keys of a call.', async () => {
    const more = Array.from({ length: 100 }, (_, index) => ({
      name: `more-${index}`,
      ...quota,
      key: 'global' as const,
      match: { path: '/other' },
    }))
    const policies = [{ name: 'p', ...quota, ...tools }, ...more]
    const appliedTo = async (size: number) => {
      const batch = Array.from({ length: size }, (_, index) => call(`tool-${index}`))
      const found = await applied({}, batch, {}, { policies })
      return (found as string[]).filter((one) => one.startsWith('global'))
    }
    expect(await appliedTo(28)).toHaveLength(28)
    expect(await appliedTo(29)).toEqual(['global+unreadable: 29'])
  })

  test('The readings of a path and the calls of a batch are combined.', async () => {
    const policy: Partial<PolicyOptions> = {
      match: { path: '/:part/*', body: { method: 'tools/call' } },
      key: ['path:part', 'body:params.name'],
    }
    const sent = { url: '/a%2F..%2Fb/x' }
    const quotas = await applied(policy, [call('x'), call('x'), call('y')], sent)
    const parts = [...new Set((quotas as string[]).map((one) => one.split('+')[0]))]
    expect(parts.length).toBeGreaterThan(1)
    expect(quotas).toEqual(parts.flatMap((part) => [`${part}+x: 2`, `${part}+y: 1`]).sort(byCall))
  })
  const byCall = (one: string, other: string) => one.slice(-4).localeCompare(other.slice(-4))
})
