/** A request that origins read in several ways counts in the way that is strictest for its client. */

import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { describedRequest } from '../../../../src/api/described-request.ts'
import { describeRequest } from '../../../../src/client/client.ts'
import type { ConfigOptions, MatchOptions } from '../../../../src/core/config/options.ts'
import { parseConfig } from '../../../../src/core/config/parse.ts'
import type { Matched } from '../../../../src/core/program/match.ts'
import { sources } from '../../../../src/core/program/source.ts'
import { RequestView } from '../../../../src/core/request/view.ts'
import { bodies } from '../../../../src/features/bodies/index.ts'
import { defaultFields } from '../../../../src/features/defaults.ts'
import { createMatcher, matcherOf } from '../../../support/create-matcher.ts'
import { isLong } from '../../../support/long.ts'

const runtime = { env: {}, waitUntil() {}, context: undefined }

const quota = { limit: 1000, window: '1m', key: 'global' } as const

describe('A repeated query parameter or header field', () => {
  const rules = [
    { query: { plan: 'free' }, cost: 1 },
    { header: { 'x-plan': 'free' }, cost: 2 },
    { cost: 25 },
  ]
  const costOf = async (url: string, headers: [string, string][] = []) => {
    const match = createMatcher({ policies: [{ name: 'p', ...quota, cost: rules }] })
    const { policies } = await match(url, { headers })
    return policies.map(({ cost }) => cost)
  }

  test.each<[string, [string, string][], number]>([
    ['/?plan=free', [], 1],
    ['/?plan=free&plan=free', [], 1],
    ['/?plan=free&plan=pro', [], 25],
    ['/?plan=pro&plan=free', [], 25],
    ['/?plan=free&plan[]=pro', [], 25],
    ['/?plan%5B%5D=free', [], 25],
    ['/?plan=free;plan=pro', [], 25],
    ['/?x=1;plan=free', [], 25],
    ['/?plan=free&other=pro', [], 1],
    ['/', [['x-plan', 'free']], 2],
    [
      '/',
      [
        ['x-plan', 'free'],
        ['x-plan', 'pro'],
      ],
      25,
    ],
    ['/', [['x_plan', 'free']], 25],
    ['/?plan=free&x=%', [], 1],
    [
      '/',
      [
        ['x-plan', 'free'],
        ['x.plan', 'pro'],
      ],
      25,
    ],
    ['/', [['x!plan', 'free']], 25],
    ['/', [['X~Plan', 'free']], 25],
    ['/?plan=free%20', [], 25],
    ['/?plan=+free%0a', [], 25],
    ['/?plan=%c2%a0free', [], 25],
    ['/?[plan]=free', [], 25],
    ['/?plan=free&Plan=pro', [], 25],
    ['/?plan=free&plan%00=pro', [], 25],
    ['/x;plan=pro?plan=free', [], 25],
    ['/x;?plan=free', [], 25],
    [`/?plan=free${'&a'.repeat(999)}`, [], 25],
    [`/?plan=free${'&a'.repeat(998)}`, [], 1],
  ])(
    '%s with the fields %j costs %i units, the most that an origin may read.',
    async (url, headers, units) => {
      expect(await costOf(url, headers)).toEqual([units])
    },
  )

  const applies = async (match: MatchOptions, url: string, headers: [string, string][] = []) => {
    const found = await createMatcher({ policies: [{ name: 'p', ...quota, match }] })(url, {
      headers,
    })
    return found.policies.length > 0
  }

  test('A policy applies if one of the values matches, and `not` exempts only if all of them do.', async () => {
    const [free, both] = ['/?plan=free', '/?plan=free&plan=pro']
    expect(await applies({ query: { plan: 'pro' } }, both)).toBe(true)
    expect(await applies({ query: { plan: 'x' } }, both)).toBe(false)
    expect(await applies({ query: { plan: 'pro' } }, '/?x=1;plan=pro')).toBe(true) // Rack before 3
    expect(await applies({ not: { query: { plan: 'free' } } }, free)).toBe(false)
    expect(await applies({ not: { query: { plan: 'free' } } }, both)).toBe(true)
    expect(await applies({ not: { query: { plan: 'free*' } } }, '/?plan=free%')).toBe(true) // Go
    expect(await applies({ not: { query: { plan: 'free*' } } }, '/?plan=free&x=%')).toBe(false)
    const lines: [string, string][] = [
      ['x-plan', 'free'],
      ['x-plan', 'pro'],
    ]
    expect(await applies({ header: { 'x-plan': 'pro' } }, '/', lines)).toBe(true)
    expect(await applies({ not: { header: { 'x-plan': 'free*' } } }, '/', lines)).toBe(true)
  })

  test('A condition compares the text of a field, in UTF-8 or in Latin-1, as a key does.', async () => {
    const lines = (value: string): [string, string][] => [['x-plan', value]]
    for (const sent of ['caf\xc3\xa9', 'caf\xe9']) {
      expect(await applies({ header: { 'x-plan': 'café' } }, '/', lines(sent))).toBe(true)
      expect(await applies({ not: { header: { 'x-plan': 'CAFÉ*' } } }, '/', lines(sent))).toBe(
        false,
      )
      expect(await applies({ header: { 'x-plan': '*ã*' } }, '/', lines(sent))).toBe(false)
    }
    const { denied } = await createMatcher({
      deny: { header: { 'x-plan': 'café' } },
      policies: [{ name: 'p', ...quota }],
    })('/', { headers: lines('pro, CAF\xc3\x89') })
    expect(denied).toBeDefined()
  })

  test.each(['pro\x0b', 'p\x00ro'])(
    'A control character in %j, which some origins drop, does not hide the value.',
    (value) => {
      // workerd passes such a value on. The constructor of Headers would throw.
      const fields = new Map([['x-plan', value]])
      const headers = { keys: () => fields.keys(), get: (name: string) => fields.get(name) ?? null }
      const request = {
        url: 'https://a.example.com/',
        method: 'GET',
        headers,
      } as unknown as Request
      const statusOf = (match: MatchOptions) => {
        const options = parseConfig({ policies: [{ name: 'p', ...quota, match }] }, defaultFields)
        const view = new RequestView(request, runtime, options, () => undefined)
        return (matcherOf(options)(view) as Matched).policies.length > 0
      }
      expect(statusOf({ header: { 'x-plan': 'pro' } })).toBe(true)
      expect(statusOf({ header: { 'x-plan': 'free' } })).toBe(false)
    },
  )

  test('The comma within a User-Agent is no second line.', async () => {
    const agent: [string, string][] = [['user-agent', 'Mozilla/5.0 (KHTML, like Gecko) Safari']]
    expect(await applies({ not: { header: { 'user-agent': 'Mozilla/*' } } }, '/', agent)).toBe(
      false,
    )
    const found = await createMatcher({
      allow: { header: { 'user-agent': '*Safari' } },
      policies: [{ name: 'p', ...quota }],
    })('/', { headers: agent })
    expect(found.unmet).toMatchObject([{ unmet: 'allow' }])
  })
})

describe('Over all readings', () => {
  const names = ['a', 'b'] as const
  const value = fc.constantFrom('x', 'y', 'z')
  const pattern = fc.constantFrom<string | true>('x', 'y', 'x*', '*z', '*y*', true)
  const fields = (prefix: string) =>
    fc.dictionary(
      fc.constantFrom('a', 'b').map((name) => prefix + name),
      pattern,
      {
        minKeys: 1,
        maxKeys: 2,
      },
    )
  const parts = {
    query: fields('').map((query) => ({ query })),
    header: fields('x-').map((header) => ({ header })),
    body: fields('').map((body) => ({ body })),
  }
  type Part = keyof typeof parts
  const conditionOf = (allowed: Part[]): fc.Arbitrary<MatchOptions> => {
    const one = fc.oneof(...allowed.map((part) => parts[part] as fc.Arbitrary<MatchOptions>))
    const two = fc.tuple(one, one).map(([first, second]) => ({ ...first, ...second }))
    return fc.oneof(
      one,
      two,
      one.map((not) => ({ not })),
      fc.tuple(one, one).map(([first, not]) => ({ ...first, not })),
    )
  }
  const anywhere = conditionOf(['query', 'header', 'body'])
  const outside = conditionOf(['query', 'header'])
  const units = fc.integer({ min: 1, max: 50 })
  const rules = fc.array(
    fc.tuple(anywhere, units).map(([one, cost]) => ({ ...one, cost })),
    { maxLength: 3 },
  )
  const policy = fc.record({
    match: anywhere,
    rules,
    otherwise: units,
    key: fc.constantFrom('global', 'cookie:a', 'cookie:b', 'query:a', 'header:x-b', 'body:a'),
    onMissingKey: fc.constantFrom('share', 'skip', 'refuse'),
  })
  const config = fc
    .record({
      deny: outside.map((one) => ({ name: 'denied', ...one })),
      allow: outside.map((one) => ({ name: 'allowed', ...one, policies: ['p0'] })),
      policies: fc.array(policy, { minLength: 1, maxLength: 3 }),
    })
    .map(({ policies, ...lists }) => ({
      ...lists,
      use: [bodies()],
      policies: policies.map(({ rules: list, otherwise, ...rest }, index) => ({
        ...quota,
        ...rest,
        name: `p${index}`,
        cost: list.length > 0 ? { rules: list, otherwise } : otherwise,
      })),
    })) as fc.Arbitrary<ConfigOptions>

  type Pair = [name: string, value: string]
  const pairs: fc.Arbitrary<Pair[]> = fc.array(fc.tuple(fc.constantFrom(...names), value), {
    maxLength: 3,
  })
  /** Pairs whose names are spelled as some origins read them: Rack, qs, PHP, ASP.NET. */
  const spelled = (...spellings: ((name: string) => string)[]): fc.Arbitrary<Pair[]> =>
    fc.array(
      fc.tuple(
        fc
          .constantFrom(...names)
          .chain((name) =>
            fc.oneof(
              { weight: 3, arbitrary: fc.constant(name) },
              { weight: 1, arbitrary: fc.constantFrom(...spellings.map((spell) => spell(name))) },
            ),
          ),
        value,
      ),
      { maxLength: 3 },
    )
  const inQuery = spelled(
    (name) => name.toUpperCase(),
    (name) => `[${name}]`,
    (name) => `${name}[]`,
    (name) => `+${name}`,
    (name) => `${name}%00x`,
    (name) => `;${name}`,
  )
  const inCookie = spelled(
    (name) => name.toUpperCase(),
    (name) => `${name}\xa0`,
    (name) => `[${name}]`,
  )
  /** With `_` instead of the `-` before it. */
  const inHeader = spelled((name) => `_${name}`)
  /** What a client sends. Each item of the body is the list of its members. A body of one item is no batch. */
  const sending = fc.record({
    query: inQuery,
    header: inHeader,
    cookie: inCookie,
    body: fc.array(pairs, { maxLength: 3 }),
  })
  type Sending = typeof sending extends fc.Arbitrary<infer T> ? T : never

  /** Where a client adds what is too long to describe. */
  const padding = fc.constantFrom(undefined, 'query', 'header', 'cookie', 'crowd', 'body')
  type Padding = typeof padding extends fc.Arbitrary<infer T> ? T : never

  const objectOf = (pairs: readonly Pair[]) =>
    `{${pairs.map(([name, one]) => `"${name}":"${one}"`).join(',')}}`
  function write({ query, header, cookie, body }: Sending, padded?: Padding) {
    const pad = 'x'.repeat(9000)
    const url = new URL(`https://a.example.com/?${query.map((pair) => pair.join('=')).join('&')}`)
    if (padded === 'query') url.search += `&pad=${pad}`
    const field = (name: string) => (name.startsWith('_') ? `x${name}` : `x-${name}`)
    const headers = new Headers(header.map(([name, one]): Pair => [field(name), one]))
    const cookies = cookie.map((pair) => pair.join('='))
    if (padded === 'cookie') cookies.push(`pad=${pad}`)
    if (cookies.length > 0) headers.set('cookie', cookies.join('; '))
    if (padded === 'header') headers.set('x-a', headers.get('x-a') ?? pad)
    if (padded === 'header') headers.set('user-agent', pad)
    if (padded === 'crowd') for (let n = 0; n < 150; n++) headers.set(`c-${n}`, '')
    headers.set('content-type', 'application/json')
    const items = body.map(objectOf)
    const text = items.length === 1 ? items[0]! : `[${items.join(',')}]`
    return {
      url: url.href,
      init: { method: 'POST', headers, ...(items.length > 0 && { body: text }) },
    }
  }

  /** The readings of a list: of each name the first, the last, or any other value, with or without its other spellings. */
  const readingsOf = (list: readonly Pair[]): Pair[][] =>
    names.reduce<Pair[][]>(
      (readings, name) => {
        const isExact = list.some(([one]) => one === name)
        const values = list.filter(([one]) => one.toLowerCase().includes(name))
        const found = values.map(([, one]): Pair[] => [[name, one]])
        if (!isExact) found.push([])
        return readings.flatMap((reading) => found.map((one) => [...reading, ...one]))
      },
      [[]],
    )

  /** The units that each policy charges. A batch may be charged to several quotas. */
  function costs({ policies }: Matched) {
    const units = new Map<string, number>()
    for (const { terms, cost } of policies) {
      units.set(terms.name, (units.get(terms.name) ?? 0) + cost)
    }
    return units
  }
  const isAllowed = ({ unmet = [] }: Matched, name: string) =>
    unmet.some((one) => one.policy.name === name && one.unmet === 'allow')

  /** Sends a description of a request to the decision API. */
  async function describedTo(options: ConfigOptions, sent: Sending, padded: Padding) {
    const { url, init } = write(sent, padded)
    const { body, ...rest } = init as RequestInit
    const config = parseConfig(options, defaultFields)
    const match = matcherOf(config)
    const description = {
      ...describeRequest(new Request(url, rest)),
      ...(body && padded !== 'body' && { body: body as string }),
    }
    const found = await describedRequest(
      description,
      { config, match, sources },
      {
        env: {},
        waitUntil: () => {},
        contextOf: async () => undefined,
      },
    )
    return found as Matched
  }

  /** Checks that a request as it was sent is as strict as a reading of it. */
  function isAsStrict(sent: Matched, read: Matched, units: Map<string, number>) {
    if (sent.denied) return
    expect(read.denied).toBeUndefined()
    for (const [name, cost] of units) {
      expect(isAllowed(sent, name)).toBe(false)
      expect(costs(sent).get(name) ?? 0).toBeGreaterThanOrEqual(cost)
    }
  }

  test('A request never costs less, meets fewer policies or enters more lists than a reading of it that is sent plainly. This includes its batch, its cookies, and its description to /decide.', async () => {
    const seen = { ambiguous: 0, batches: 0, omitted: 0 }
    await fc.assert(
      fc.asyncProperty(config, sending, padding, async (options, sent, padded) => {
        const match = createMatcher(options)
        /** The policies that charge each item of a batch. The others charge a request once. */
        const byItem = new Set(
          parseConfig(options, defaultFields).policies.flatMap(({ name, usesBody }) =>
            usesBody ? name : [],
          ),
        )
        const plain = write(sent)
        const direct = await match(plain.url, plain.init)
        const described = await describedTo(options, sent, padded)
        for (const query of readingsOf(sent.query)) {
          for (const header of readingsOf(sent.header)) {
            for (const cookie of readingsOf(sent.cookie)) {
              const rest = { query, header, cookie }
              /** An app runs each item of a batch. It may read each of them in several ways. */
              const all = new Map<string, number>()
              for (const item of sent.body.length > 0 ? sent.body : [undefined]) {
                const dearest = new Map<string, number>()
                for (const members of item ? readingsOf(item) : [undefined]) {
                  const { url, init } = write({ ...rest, body: members ? [members] : [] })
                  const read = await match(url, init)
                  if (sent.body.length < 2) {
                    isAsStrict(direct, read, costs(read))
                    isAsStrict(described, read, costs(read))
                  }
                  if (read.denied) continue
                  for (const [name, cost] of costs(read)) {
                    dearest.set(name, Math.max(dearest.get(name) ?? 0, cost))
                  }
                }
                for (const [name, cost] of dearest) {
                  const before = all.get(name) ?? 0
                  all.set(name, byItem.has(name) ? before + cost : Math.max(before, cost))
                }
              }
              const none = { policies: [] }
              isAsStrict(direct, none, all)
              if (padded !== 'body') isAsStrict(described, none, all)
            }
          }
        }
        if (sent.body.length > 1) seen.batches += 1
        if (padded) seen.omitted += 1
        if (new Set(sent.cookie.map(([name]) => name)).size < sent.cookie.length)
          seen.ambiguous += 1
      }),
      { numRuns: isLong ? 1000 : 150 },
    )
    for (const count of Object.values(seen)) expect(count).toBeGreaterThan(5)
  })
})
