import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { LogLine } from '../../../cli/replay/line.ts'
import { detect } from '../../../cli/replay/read/detect.ts'
import type { Format } from '../../../cli/replay/read/log.ts'
import { readMap } from '../../../cli/replay/read/map.ts'
import { logLines, wrappings, writable, writers } from '../../support/log-lines.ts'

/** Detects the format of lines and parses them. */
function parse(
  lines: string[],
  {
    map = {},
    host,
    format = 'auto',
  }: { map?: Record<string, string>; host?: string; format?: Format | 'auto' } = {},
) {
  const { parser, wholeSeconds } = detect('a.log', lines, format, { map: readMap(map), host })
  const results = lines.map((line) => parser.parse(line)).filter((one) => one !== undefined)
  return { title: parser.title, facts: parser.facts, wholeSeconds, results }
}
const headerOf = ({ header }: { header?: string }) => header?.split('\n') ?? []
/** The writers write no headers but addresses. */
const withoutRest = (line: object) => ({ ...line, sender: undefined, headers: undefined })
const first = (...args: Parameters<typeof parse>) => parse(...args).results[0]

const COMBINED = '192.0.2.1 - - [17/May/2015:10:05:03 +0000] "GET /a?b=c HTTP/1.1" 200 12'

describe('Formats of access logs', () => {
  test.each(Object.keys(writers))(
    'A written line of the format %s parses to the same request.',
    (title) => {
      const writer = writers[title]!
      fc.assert(
        fc.property(fc.array(logLines, { minLength: 1, maxLength: 20 }), (requests) => {
          const lines = requests.map((request) => writable(request, writer))
          const texts = lines.map((line) => writer.write(line))
          const parsed = parse([...headerOf(writer), ...texts])
          expect(parsed.title).toBe(writer.title ?? title)
          expect(parsed.results.map(withoutRest)).toEqual(lines)
        }),
        { numRuns: 100 },
      )
    },
  )

  test('A line that collectors have wrapped parses to the same request.', () => {
    const wrapped = fc.record({
      title: fc.constantFrom(...Object.keys(writers)),
      around: fc.uniqueArray(fc.constantFrom(...Object.keys(wrappings)), { maxLength: 2 }),
      requests: fc.array(logLines, { minLength: 1, maxLength: 10 }),
    })
    fc.assert(
      fc.property(wrapped, ({ title, around, requests }) => {
        const writer = writers[title]!
        const lines = requests.map((request) => writable(request, writer))
        const texts = [...headerOf(writer), ...lines.map((line) => writer.write(line))]
        const parsed = parse(
          texts.map((text) => around.reduce((inner, name) => wrappings[name]!(inner), text)),
        )
        expect(parsed.title).toBe(writer.title ?? title)
        expect(parsed.results.map(withoutRest)).toEqual(lines)
      }),
      { numRuns: 500 },
    )
  })

  test('Only facts that a format has are reported.', () => {
    const facts = (line: string) => [...parse([line]).facts].sort()
    expect(facts(COMBINED)).toEqual(['ip', 'query', 'status'])
    expect(facts(`${COMBINED} "-" "curl/8"`)).toEqual([
      'header:referer',
      'header:user-agent',
      'ip',
      'query',
      'status',
    ])
    expect(facts('{"time":"2024-01-01T00:00:00Z","method":"GET","path":"/"}')).toEqual([])
    expect(
      facts('{"time":1704067200,"method":"GET","path":"/","args":"a=b","client":"::1"}'),
    ).toEqual(['ip', 'query'])
  })

  test('A host that the user names is a fact, and that of a line has priority.', () => {
    const line = COMBINED.replace('/a?b=c', 'http://Other.example:8080/a')
    expect(parse([COMBINED], { host: 'example.com' }).facts).toContain('host')
    expect(first([COMBINED], { host: 'example.com' })).toMatchObject({ host: 'example.com' })
    expect(first([line], { host: 'example.com' })).toMatchObject({
      host: 'other.example',
      target: '/a',
    })
  })

  test('A log whose clients are host names has no addresses.', () => {
    const { facts, results } = parse([COMBINED.replace('192.0.2.1', 'client.example')])
    expect(facts).not.toContain('ip')
    expect(results[0]).toMatchObject({ ip: undefined })
  })

  test.each([
    ['/a b', '/a%20b'],
    ['/é', '/%C3%A9'],
    ['/\\xc3\\xa9\\x22', '/%C3%A9%22'],
    ['/a\\"b', '/a%22b'],
    ['/a#b', '/a%23b'],
    ['https://example.com', '/'],
    ['https://example.com?a', '/?a'],
  ])('The target %s of a line becomes %s.', (raw, target) => {
    expect(first([COMBINED.replace('/a?b=c', raw)])).toMatchObject({ target })
  })

  test.each([
    ['-', 'no request'],
    ['', 'no request'],
    ['\\x16\\x03\\x01\\x02\\x00', 'TLS handshake'],
    ['\\x03\\x00\\x00/*\\xE0', 'not an HTTP request'],
    ['quit', 'not an HTTP request'],
    ['CONNECT example.com:443 HTTP/1.1', 'no path'],
    ['OPTIONS * HTTP/1.1', 'no path'],
  ])('The request line %j is counted as a line without a request.', (request, reason) => {
    const result = first([COMBINED.replace('GET /a?b=c HTTP/1.1', request), COMBINED])
    expect(result).toMatchObject({
      kind: 'without-request',
      reason: expect.stringContaining(reason),
    })
  })

  test('A time in brackets can be ISO 8601, as in nginx’s $time_iso8601.', () => {
    const line = COMBINED.replace('17/May/2015:10:05:03 +0000', '2015-05-17T12:05:03+02:00')
    expect(first([line])).toMatchObject({ time: Date.UTC(2015, 4, 17, 10, 5, 3) })
  })

  test('A line that was cut in the user agent is a request.', () => {
    expect(first([`${COMBINED} "-" "Mozilla/5.0 (compa`])).toMatchObject({
      userAgent: 'Mozilla/5.0 (compa',
    })
  })

  test('The name of a user may contain spaces and brackets.', () => {
    expect(first([COMBINED.replace('- - [', '- a [b] c [')])).toMatchObject({
      time: Date.UTC(2015, 4, 17, 10, 5, 3),
    })
  })

  test.each([
    ['1970', COMBINED.replace('2015', '1970')],
    ['2106', COMBINED.replace('2015', '2106')],
    ['1970', '{"time":12,"method":"GET","path":"/"}'],
    ['2106', '{"time":"2106-02-07T06:28:15Z","method":"GET","path":"/"}'],
  ])('A time in the year %s is rejected: %s', (year, line) => {
    expect(first([line])).toMatchObject({
      kind: 'time',
      reason: expect.stringContaining(`the year ${year}`),
    })
  })

  test.each([
    '31/Feb/2015:10:05:03 +0000',
    '17/May/2015:24:05:03 +0000',
    '17/May/2015:10:05:03 0000',
    '17/Mai/2015:10:05:03 +0000',
  ])('The invalid time %s is rejected.', (stamp) => {
    const { results } = parse([COMBINED, COMBINED.replace('17/May/2015:10:05:03 +0000', stamp)])
    expect(results[1]).toHaveProperty('reason')
  })

  test.each<[string, unknown, number]>([
    ['seconds', 1704067200, 1704067200000],
    ['seconds with a fraction', 1704067200.123, 1704067200123],
    ['milliseconds', 1704067200123, 1704067200123],
    ['microseconds', 1704067200123456, 1704067200123],
    ['nanoseconds', 1704067200123456789n.toString(), 1704067200123],
    ['ISO 8601', '2024-01-01T02:00:00.123456789+02:00', 1704067200123],
    ['a date without a zone', '2024-01-01 00:00:00', 1704067200000],
    ['$time_local in brackets', '[01/Jan/2024:00:00:00 +0000]', 1704067200000],
    ['a time of Go', '2024-01-01 00:00:00.123456789 +0000 UTC', 1704067200123],
    ['hours east of UTC', '2024-01-01T02:00:00+02', 1704067200000],
    ['slashes', '2024/01/01 00:00:00', 1704067200000],
    ['a stamp of Django', '01/Jan/2024 00:00:00', 1704067200000],
    ['a stamp of HAProxy', '01/Jan/2024:00:00:00.123', 1704067200123],
    ['a fraction before the zone', '01/Jan/2024:00:00:00.123 +0000', 1704067200123],
  ])('A time in JSON can be written as %s.', (_, time, expected) => {
    expect(first([JSON.stringify({ time, method: 'GET', path: '/' })])).toMatchObject({
      time: expected,
    })
  })

  test('Headers of Caddy are read, except those that it redacts.', () => {
    const request = {
      method: 'GET',
      uri: '/',
      host: 'a.example',
      remote_ip: '::1',
      headers: { 'X-Plan': ['gold', 'x'], Cookie: ['REDACTED'] },
    }
    const { facts, results } = parse([JSON.stringify({ ts: 1704067200.5, request, status: 200 })])
    expect(results[0]).toMatchObject({ headers: { 'x-plan': 'gold, x' } })
    expect((results[0] as LogLine).headers).not.toHaveProperty('cookie')
    expect(facts.has('header:x-other')).toBe(true)
    expect(facts.has('header:cookie')).toBe(false)
  })

  test('A variable of nginx for a request header is that header.', () => {
    const { facts, results } = parse([
      '{"msec":"1704067200.250","request":"GET / HTTP/1.1","remote_addr":"::1","http_x_plan":"gold"}',
    ])
    expect(facts).toContain('header:x-plan')
    expect(results[0]).toMatchObject({ headers: { 'x-plan': 'gold' }, time: 1704067200250 })
  })

  test('nginx’s escapes, which are invalid JSON, are read.', () => {
    const line =
      '{"time":"2024-01-01T00:00:00Z","request":"GET /\\x22 HTTP/1.1","http_user_agent":"a\\x22b"}'
    expect(first([line])).toMatchObject({ target: '/%22', userAgent: 'a"b' })
  })

  test('A mapping names fields of JSON, CSV and the Combined Log Format.', () => {
    const nested = '{"at":1704067200,"what":{"verb":"GET","where":"/x"},"plan":"gold","time":5}'
    const map = { time: 'at', method: 'what.verb', path: 'what.where', 'header:X-Plan': 'plan' }
    expect(first([nested], { map })).toMatchObject({ target: '/x', headers: { 'x-plan': 'gold' } })
    expect(
      first(['at;m;p', '1704067200;GET;/x'], { map: { time: 'at', method: 'm', target: 'p' } }),
    ).toMatchObject({ target: '/x' })
    const line = `${COMBINED} "-" "curl" "203.0.113.9, 10.0.0.1" gold`
    expect(
      first([line], { map: { ip: 'forwardedFor', 'header:x-plan': 'field11' } }),
    ).toMatchObject({
      ip: '10.0.0.1',
      headers: { 'x-plan': 'gold', 'x-forwarded-for': '203.0.113.9, 10.0.0.1' },
    })
  })

  test('A date and a time in two fields are the time, in JSON too.', () => {
    expect(
      first(['{"date":"2024-01-01","time":"00:00:00.5","cs-method":"GET","cs-uri-stem":"/"}']),
    ).toMatchObject({ time: 1704067200500 })
  })

  test.each([
    ['{"ts":1704067200,"head":"GET /a?b HTTP/1.1"}', 'head'],
    ['{"ts":1704067200,"method":"PUT","path":"/x","in":{"head":"GET /a?b HTTP/1.1"}}', 'in.head'],
  ])('A whole request line of %s can be mapped.', (line, name) => {
    const { facts, results } = parse([line], { map: { request: name } })
    expect(results[0]).toMatchObject({ method: 'GET', target: '/a?b' })
    expect(facts).toContain('query')
  })

  test.each([
    ['192.0.2.1:4711', '192.0.2.1'],
    ['[2001:db8::1]:4711', '2001:db8::1'],
    ['203.0.113.9, 192.0.2.1', '192.0.2.1'],
    ['203.0.113.9,[2001:db8::1]:443', '2001:db8::1'],
    ['for=203.0.113.9, for="[2001:db8::1]:4711";proto=https', '2001:db8::1'],
    ['proto=https; for=192.0.2.1', '192.0.2.1'],
    ['203.0.113.9, unknown', undefined],
  ])('The last address in %s is %s: clients write those before it.', (ip, expected) => {
    const line = { ts: 1704067200, method: 'GET', path: '/', from: ip }
    expect(first([JSON.stringify(line)], { map: { ip: 'from' } })).toMatchObject({ ip: expected })
  })

  test.each([
    ['an unknown property', COMBINED, { color: 'x' }, 'The properties are'],
    ['an unknown field of the Combined Log Format', COMBINED, { ip: 'xff' }, 'forwardedFor'],
    [
      'an unknown field of JSON',
      '{"time":1704067200,"method":"GET","path":"/"}',
      { ip: 'xff' },
      'no field xff',
    ],
    ['JSON without a method', '{"time":1704067200,"path":"/"}', {}, '--map method=FIELD'],
  ])('A mapping error is explained: %s.', (_, line, map, message) => {
    expect(() => parse([line], { map })).toThrow(message)
  })

  describe('The Extended Log File Format of W3C', () => {
    const head =
      '#Version: 1.0\n#Fields: date time c-ip cs-method cs-uri-stem cs-uri-query sc-status'
    const row = '2026-11-20 10:00:03 192.0.2.1 GET /a b=c 200'
    const read = (text: string) => parse(text.split('\n')).results as LogLine[]

    test('may name other fields later in the file, and may name them again.', () => {
      const others = '#Fields: time\tdate\tcs-uri-stem\tcs-method\tc-ip'
      const lines = read(
        `${head}\n${row}\n${head}\n${row}\n${others}\n10:00:04\t2026-11-20\t/b\tPOST\t192.0.2.2`,
      )
      expect(lines).toHaveLength(3)
      expect(lines[1]).toMatchObject({ ip: '192.0.2.1', target: '/a?b=c', status: 200 })
      expect(lines[2]).toMatchObject({
        ...{
          time: Date.UTC(2026, 10, 20, 10, 0, 4),
          ip: '192.0.2.2',
          method: 'POST',
          target: '/b',
        },
      })
    })

    test.each([
      ['Mozilla/5.0+(X11;+Linux)', 'Mozilla/5.0 (X11; Linux)'],
      [
        'Mozilla/5.0%20(compatible;%20+http://a.example)',
        'Mozilla/5.0 (compatible; +http://a.example)',
      ],
      ['Mozilla/5.0%2520(X11)', 'Mozilla/5.0 (X11)'],
      ['"Mozilla/5.0 (X11)"', 'Mozilla/5.0 (X11)'],
      ['-', undefined],
      ['100%25%zz', '100%%zz'],
    ])('has the user agent %s, which is read as %s.', (written, userAgent) => {
      expect(read(`${head} cs(User-Agent)\n${row} ${written}`)[0]).toMatchObject({ userAgent })
    })

    test('has a header where the server logs one.', () => {
      const [line] = read(`${head} cs(X-Plan) X-Forwarded-For\n${row} gold 203.0.113.9,+192.0.2.1`)
      expect(line!.headers).toEqual({
        'x-plan': 'gold',
        'x-forwarded-for': '203.0.113.9, 192.0.2.1',
      })
    })

    test.each([
      ['date c-ip cs-method cs-uri-stem', '2026-11-20 192.0.2.1 GET /', 'lacks date and time'],
      ['time c-ip cs-method cs-uri-stem', '10:00:00 192.0.2.1 GET /', 'lacks date and time'],
      ['date time c-ip cs-uri-stem', '2026-11-20 10:00:00 192.0.2.1 /', 'lacks cs-method'],
      ['date time c-ip cs-method', '2026-11-20 10:00:00 192.0.2.1 GET', 'lacks cs-uri-stem'],
    ])(
      'with the fields %s ends with a sentence that names what is missing.',
      (fields, line, text) => {
        expect(() => read(`#Fields: ${fields}\n${line}`)).toThrow(`#Fields ${text}: add`)
        // Also where the fields change.
        expect(() => read(`${head}\n${row}\n#Fields: ${fields}\n${line}`)).toThrow(text)
      },
    )

    test('has no request before #Fields, or with another number of values.', () => {
      const lines = read(`${row}\n${head}\n${row}\n${row} 12`)
      expect(lines.map((one) => 'reason' in one && one.reason)).toEqual([
        'there is no #Fields before the line',
        false,
        'the line has 8 fields, but #Fields has 7',
      ])
    })
  })

  test('Lines of two formats in one file are an error that names both.', () => {
    const json = '{"time":1704067200,"method":"GET","path":"/"}'
    expect(() => parse([COMBINED, json, json, json])).toThrow(
      /line 2 is JSON.*line 1 is Common Log Format/,
    )
  })

  test('Whole seconds are recognized.', () => {
    expect(parse([COMBINED]).wholeSeconds).toBe(true)
    expect(parse(['{"time":1704067200.5,"method":"GET","path":"/"}']).wholeSeconds).toBe(false)
  })
})
