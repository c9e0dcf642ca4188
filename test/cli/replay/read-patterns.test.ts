/** `--pattern`, and what a message says about a line that no reader knows. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createLineMatcher } from '../../../cli/replay/decide/matcher.ts'
import type { LogLine } from '../../../cli/replay/line.ts'
import { detect, type How } from '../../../cli/replay/read/detect.ts'
import { readMap } from '../../../cli/replay/read/map.ts'
import { parseConfig } from '../../../src/core/config/parse.ts'
import { defaultFields } from '../../../src/features/defaults.ts'
import { clfStamp, logLines, wrappings } from '../../support/log-lines.ts'

const parse = (lines: string[], how: How = 'auto', map: Record<string, string> = {}) => {
  const { parser } = detect('a.log', lines, how, { map: readMap(map), host: undefined })
  return { parser, lines: lines.map((line) => parser.parse(line)) }
}
const TIME = Date.UTC(2026, 10, 20, 10)

describe('A pattern', () => {
  test('reads the lines that nginx writes with it as log_format, whatever is between the fields.', () => {
    const values: Record<string, (line: LogLine) => string> = {
      $remote_addr: ({ ip }) => ip!,
      $time_local: ({ time }) => clfStamp(time, 120),
      $msec: ({ time }) => (time / 1000).toFixed(3),
      $request: ({ method, target }) => `${method} ${target} HTTP/1.1`,
      $status: ({ status }) => `${status}`,
      $http_host: ({ host }) => host!,
    }
    const between = fc.constantFrom('|', '\t', ' | ', ';', '" "', '] [', ' - ')
    const drawn = fc.record({
      time: fc.constantFrom('$time_local', '$msec'),
      order: fc.shuffledSubarray(['$remote_addr', '$request', '$status', '$http_host', '$_'], {
        minLength: 5,
      }),
      between,
      requests: fc.array(logLines, { minLength: 1, maxLength: 5 }),
      around: fc.option(fc.constantFrom(...Object.keys(wrappings)), { nil: undefined }),
    })
    fc.assert(
      fc.property(drawn, ({ time, order, between, requests, around }) => {
        const names = [time, ...order, '$_']
        // A target does not contain what is between the fields.
        const lines = requests.map((line) => ({
          ...line,
          target: line.target.replace(/[;-]/g, '_'),
          time: time === '$msec' ? line.time : Math.floor(line.time / 1000) * 1000,
        }))
        const texts = lines.map((line) => {
          const text = `"${names.map((name) => values[name]?.(line) ?? '7').join(between)}"`
          return around === undefined ? text : wrappings[around]!(text)
        })
        const read = parse(texts, { pattern: `"${names.join(between)}"` }).lines
        expect(read).toMatchObject(
          lines.map(({ ip, method, target, status, host, time }) => ({
            ...{ ip, method, target, status, host, time },
          })),
        )
      }),
      { numRuns: 300 },
    )
  })

  test.each([
    [
      '$remote_addr:$remote_port [$time] "$request" $status',
      '2001:db8:1:2::9:4711 [20/Nov/2026:10:00:00 +0000] "GET /a HTTP/1.1" 200',
      { ip: '2001:db8:1:2::9' },
    ],
    [
      // biome-ignore lint/suspicious/noTemplateCurlyInString: nginx has this form of names too
      '$remote_addr ${time} $method $target $status "$http_x_plan"',
      '192.0.2.1 2026-11-20T10:00:00Z GET /a 200 "go\\x22ld" and more',
      { ip: '192.0.2.1', headers: { 'x-plan': 'go"ld' } },
    ],
    [
      '$time $_ $ip $_/$status $_ $method $target ',
      '1795168800.000    180 192.168.0.224 TCP_MISS/200 411 GET http://a.example/a - DIRECT',
      { ip: '192.168.0.224', host: 'a.example' },
    ],
    [
      '$ip\\t$date\\t$time\\t$method\\t$target',
      '192.0.2.1\t2026-11-20\t10:00:00\tGET\t/a',
      { ip: '192.0.2.1' },
    ],
    [
      '[GIN] $date - $time | $status | $_ | $ip | $method "$target"',
      '[GIN] 2026/11/20 - 10:00:00 | 200 |     1.2ms |     192.0.2.1 | GET      "/a"',
      { ip: '192.0.2.1', status: 200 },
    ],
  ])('%s describes the line %s', (pattern, line, expected) => {
    expect(parse([line], { pattern }).lines[0]).toMatchObject({
      ...{ time: TIME, method: 'GET', target: '/a', ...expected },
    })
  })

  test('has fields for --map, and headers.', () => {
    const { parser, lines } = parse(
      ['192.0.2.1 gold 2026-11-20T10:00:00Z GET /a HTTP/1.1'],
      { pattern: '$who $plan $time $line' },
      { ip: 'who', 'header:x-plan': 'plan', request: 'line' },
    )
    expect(lines[0]).toMatchObject({ ip: '192.0.2.1', headers: { 'x-plan': 'gold' }, target: '/a' })
    expect(parser.facts).toContain('header:x-plan')
  })

  test.each([
    ['%h %l %u %t "%r"', "names no field. Write the format of nginx, such as '$remote_addr"],
    ['$remote_addr$time', '$remote_addr and $time have nothing between them'],
    ['$ip $time $ip', '$ip is there twice. Write $_ for a field that is not needed.'],
  ])('that is %s is an error that says what to write.', (pattern, message) => {
    expect(() => parse(['x'], { pattern })).toThrow(`--pattern: `)
    expect(() => parse(['x'], { pattern })).toThrow(message)
  })

  test.each([
    ['$ip [$time] "$request"', 'expects " [" after $ip, from character 1'],
    ['$ip - [$time] "$request"', 'expects "] \\"" after $time, from character 14'],
    ['= $ip', 'expects "= " at the beginning'],
  ])('that no line has, %s, is an error that says where the line departs.', (pattern, message) => {
    const line = '192.0.2.1 - [20/Nov/2026:10:00:00 +0000]\t"GET / HTTP/1.1"'
    const shown = message.includes('" ["') ? line.replace(' [', '[') : line
    for (const wrap of [(text: string) => text, wrappings['docker logs -t']!]) {
      expect(() => parse([wrap(shown)], { pattern })).toThrow(message)
    }
  })

  test('without a time or a request is an error that names the fields.', () => {
    expect(() => parse(['192.0.2.1 GET /'], { pattern: '$ip $method $target' })).toThrow(
      'No field holds the time of the requests. Name it: --map time=FIELD. The fields are ip, method, target.',
    )
    expect(() => parse(['1795168800 192.0.2.1'], { pattern: '$time $ip' })).toThrow(
      '--map target=FIELD, or --map request=FIELD for a whole request line',
    )
  })
})

describe('A message never says that the log lacks an address that is in the line', () => {
  const clf = '- - [20/Nov/2026:10:00:00 +0000] "GET /a HTTP/1.1" 200 5 "-" "curl"'
  test.each<[string, How, string, string]>([
    [
      `web1 nginx 192.0.2.1 ${clf}`,
      'auto',
      '192.0.2.1 in the line: --pattern \'$_ $_ $remote_addr $_ [$time_local] "$request"',
      '',
    ],
    [`client.example ${clf} "192.0.2.1"`, 'auto', 'in field10: --map ip=field10', ''],
    [
      '{"ts":1795168800,"method":"GET","path":"/","from":{"addr":"192.0.2.1"}}',
      'auto',
      'in the field from.addr: --map ip=from.addr',
      '',
    ],
    ['when,method,path,who\n1795168800,GET,/,192.0.2.1', 'auto', 'in the field who', 'when'],
    [
      '1795168800 192.0.2.1 GET /',
      { pattern: '$time $who $method $target' },
      'in the field who: --map ip=who',
      '',
    ],
    [
      '1795168800 192.0.2.1 GET /',
      { pattern: '$time $_ $method $target' },
      '192.0.2.1 in the line: write $remote_addr for it in --pattern',
      '',
    ],
  ])('%s', (text, how, clause, time) => {
    const { parser } = parse(text.split('\n'), how, time ? { time } : {})
    const config = parseConfig({ policies: [{ name: 'p', limit: 1, window: '1m' }] }, defaultFields)
    const [{ reason }] = createLineMatcher(config, parser).notReplayed as unknown as [
      { reason: string },
    ]
    expect(reason).toMatch(/^its key ip reads the address of the client, which may be /)
    expect(reason).toContain(clause)
    expect(reason).not.toContain('does not have')
  })

  test('The pattern that it names reads the line.', () => {
    const line = `web1 nginx 192.0.2.1 ${clf}`
    const [, pattern] = /--pattern '(.*)'/.exec(parse([line]).parser.addressMayBe!)!
    expect(parse([line], { pattern: pattern! }).lines[0]).toMatchObject({
      ...{ ip: '192.0.2.1', time: TIME, target: '/a', status: 200, userAgent: 'curl' },
    })
  })
})
