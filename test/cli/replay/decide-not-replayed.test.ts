import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { createLineMatcher } from '../../../cli/replay/decide/matcher.ts'
import { createReplayer } from '../../../cli/replay/decide/replayer.ts'
import type { Fact } from '../../../cli/replay/line.ts'
import { openLog } from '../../../cli/replay/read/open.ts'
import type { ConfigOptions, PolicyOptions } from '../../../src/core/config/options.ts'
import { parseConfig } from '../../../src/core/config/parse.ts'
import { bodies } from '../../../src/features/bodies/index.ts'
import { defaultFields } from '../../../src/features/defaults.ts'
import { jwt } from '../../../src/features/jwt/index.ts'
import { leases, overrides } from '../../support/features.ts'
import { lineAt } from '../../support/replay.ts'

const combined: Fact[] = ['ip', 'status', 'query', 'header:user-agent', 'header:referer']
const policy: PolicyOptions = { name: 'p', limit: 1, window: '1m' }

const matcherOf = (config: ConfigOptions, facts = combined) =>
  createLineMatcher(parseConfig(config, defaultFields), { facts: new Set(facts) })

/** The reason why this policy is not replayed. */
const reason = (fields: Partial<PolicyOptions>, facts = combined) =>
  matcherOf(
    {
      policies: [{ ...policy, ...fields } as PolicyOptions],
      use: [bodies(), jwt({ secret: 'JWT_SECRET', algorithms: ['HS256'] })],
    },
    facts,
  ).notReplayed.map((one) => one.reason)

describe('A policy that the log cannot replay', () => {
  test.each<[part: string, fact: string, option: string, Partial<PolicyOptions>, Fact[]?]>([
    ['key header:x-user', 'header x-user', 'map header:x-user=FIELD', { key: 'header:X-User' }],
    ['key cookie:id', 'header cookie', 'map header:cookie=FIELD', { key: 'cookie:id' }],
    ['key query:q', 'query', 'map query=FIELD', { key: 'query:q' }, []],
    ['match', 'query', 'map query=FIELD', { key: 'global', match: { query: { q: true } } }, []],
    [
      'match',
      'host',
      'host NAME or --map host=FIELD',
      { match: { path: '/a', not: { path: '/b', host: 'a.example' } } },
    ],
    ['match', 'country of the client', 'map country=FIELD', { match: { country: 'DE' } }],
    ['match', 'network of the client', 'map asn=FIELD', { match: { asn: 64500 } }],
    [
      'plan header:x-plan',
      'header x-plan',
      'map header:x-plan=FIELD',
      { plan: 'header:x-plan', limits: { pro: 5 } },
    ],
    [
      'onMissingKey asn',
      'network of the client',
      'map asn=FIELD',
      { key: 'header:user-agent', onMissingKey: { key: 'asn' } },
    ],
    [
      'cost',
      'header x-bulk',
      'map header:x-bulk=FIELD',
      { cost: [{ method: 'PUT', header: { 'x-bulk': true }, cost: 5 }] },
    ],
    [
      'reserve',
      'header x-bulk',
      'map header:x-bulk=FIELD',
      { reserve: [{ match: { header: { 'x-bulk': true } }, share: 0.5 }] },
    ],
    ['key ip', 'address of the client', 'map ip=FIELD', {}, []],
    [
      'countOnly',
      'status of the response',
      'map status=FIELD',
      { key: 'global', countOnly: 401 },
      [],
    ],
  ])('is reported if its %s reads the %s: --%s.', (part, fact, option, fields, facts) => {
    expect(reason(fields, facts)).toEqual([
      `its ${part} reads the ${fact}, which the log does not have: log it, and name its field: --${option}`,
    ])
  })

  test.each<[string, Partial<PolicyOptions>]>([
    ['its limit reads a verified token', { limit: { claim: 'rate', max: 9, otherwise: 5 } }],
    ['its key jwt:sub reads a verified token', { key: 'jwt:sub' }],
    ['its key api-key reads an API key', { key: 'api-key' }],
    ['its key verifiedBot reads whether the client is a verified bot', { key: 'verifiedBot' }],
    ['its match reads the bot score', { match: { path: '/a', botScore: { below: 30 } } }],
    ['its match reads the JA4 fingerprint', { match: { not: { ja4: 't13*' } } }],
    ['it reads how long a request runs', { algorithm: 'concurrency' }],
    ['it reads the body of the request', { key: 'body:user' }],
    ['it reads the body of the request', { match: { body: { method: 'tools/call' } } }],
    ['it reads the body of the request', { cost: { body: 'max_tokens', max: 9 } }],
    ['its cost reads the body of the response', { cost: { usage: 'total', max: 9 } }],
    ['its cost reads the header x-price of the response', { cost: { response: 'X-Price' } }],
    ['its cost by x-cost reads the token of a trusted proxy', { cost: { header: 'X-Cost' } }],
  ])('is reported whatever the log has: %s.', (expected, fields) => {
    expect(reason(fields)).toEqual([`${expected}, which a replay does not have`])
  })

  test('is reported if its key is a function, which is not called.', () => {
    const called = vi.fn(() => 'x')
    expect(reason({ key: called })).toEqual([
      'its key function reads the context of the app, which a replay does not have',
    ])
    expect(called).not.toHaveBeenCalled()
  })

  test('is reported with each field that the log lacks.', () => {
    expect(reason({ key: ['header:a', 'header:b'], match: { country: 'DE' } })).toHaveLength(3)
  })

  test.each<[format: string, lines: string, remedies: string[]]>([
    [
      'combined',
      '203.0.113.7 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1 "-" "curl"',
      [
        'add "$http_x_user" to the end of log_format (Apache: \\"%{x-user}i\\" to LogFormat), with --map header:x-user=field10',
        '--host NAME, or add "$http_host" to the end of log_format (Apache: \\"%{Host}i\\" to LogFormat), with --map host=field10',
        'log it, and name its field: --map asn=FIELD',
      ],
    ],
    [
      'nginx JSON',
      '{"msec":1,"remote_addr":"203.0.113.7","request":"GET / HTTP/1.1"}',
      [
        'add "http_x_user":"$http_x_user" to log_format',
        'add "http_host":"$http_host" to log_format',
        'log it, and name its field: --map asn=FIELD',
      ],
    ],
    [
      'Logpush',
      '{"EdgeStartTimestamp":1767614400,"ClientRequestURI":"/","ClientRequestMethod":"GET"}',
      [
        'add the request header x-user to the custom fields of the zone, and RequestHeaders to the fields of the job',
        'add ClientRequestHost to the fields of the job',
        'add ClientASN to the fields of the job',
      ],
    ],
  ])('is reported with the line to add to a log of %s.', async (_, line, remedies) => {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-'))
    try {
      await writeFile(join(folder, 'access.log'), `${line}\n`)
      const { facts, remedyOf } = await openLog([join(folder, 'access.log')])
      const wanted: Fact[] = ['header:x-user', 'host', 'asn']
      expect(wanted.filter((fact) => !facts.has(fact)).map(remedyOf)).toEqual(remedies)
    } finally {
      await rm(folder, { recursive: true })
    }
  })

  test('is not reported if a log has what it reads, with the line that was added.', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-'))
    try {
      const file = join(folder, 'access.log')
      const line =
        '203.0.113.7 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1 "-" "curl" "ann"'
      await writeFile(file, `${line}\n`)
      const log = await openLog([file], { map: { 'header:x-user': 'field10' } })
      const config = parseConfig({ policies: [{ ...policy, key: 'header:x-user' }] }, defaultFields)
      expect(createLineMatcher(config, log).notReplayed).toEqual([])
    } finally {
      await rm(folder, { recursive: true })
    }
  })

  test('is replayed if the log has the fact.', () => {
    expect(reason({ key: 'header:x-user' }, ['header:x-user'])).toEqual([])
    expect(reason({ key: 'header:host', match: { host: 'a.example' } }, ['host'])).toEqual([])
    expect(reason({ key: ['ip', 'path', 'method', 'query:q', 'header:referer'] })).toEqual([])
  })

  test('is left out, while the others are replayed.', async () => {
    const config = parseConfig(
      {
        policies: [policy, { ...policy, name: 'by-user', key: 'header:x-user' }],
        deny: [{ country: 'KP' }],
        allow: { name: 'monitor', header: { 'x-monitor': 'secret-of-the-monitor' } },
      },
      defaultFields,
    )
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
      { ...policy, name: 'search', overrides: true },
      { ...policy, name: 'busy', lease: { max: 10, ttl: '1s' } },
    ],
    use: [leases(), overrides()],
    live: { from: 'redis' },
  })
  expect(notReplayed).toEqual([])
  expect(notes.map((note) => note.replace(/\..*/s, ''))).toEqual([
    'login: A response that does not count is refunded at once',
    'busy: Every request is decided exactly',
    'search: Limits that operators have set for single keys are not replayed',
    'The live document is not read: the policies of the file are replayed',
  ])
})

test('Memory decides what it can decide exactly, and Redis the rest.', async () => {
  const log = { facts: new Set(combined), wholeSeconds: true }
  const engineOf = async (fields: Partial<PolicyOptions>, exact = false) => {
    const config = parseConfig(
      { policies: [{ ...policy, ...fields } as PolicyOptions] },
      defaultFields,
    )
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
