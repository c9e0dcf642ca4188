import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { LogLine } from '../../../cli/replay/line.ts'
import { LogError, type LogOptions } from '../../../cli/replay/read/log.ts'
import { openLog } from '../../../cli/replay/read/open.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-log-'))
})
afterAll(() => rm(folder, { recursive: true }))

let files = 0
async function file(content: string | Buffer): Promise<string> {
  const path = join(folder, `${files++}.log`)
  await writeFile(path, content)
  return path
}

/** Reads a whole log with this content. */
async function read(content: string | Buffer, options?: LogOptions) {
  const log = await openLog([await file(content)], options)
  const lines: LogLine[] = []
  for await (const list of log.lines()) lines.push(...list)
  return { ...log.progress, requests: lines, format: log.format }
}

/** The error of a log, with its code. */
async function failure(attempt: Promise<unknown>): Promise<LogError> {
  const error = await attempt.then(
    () => undefined,
    (reason) => reason,
  )
  expect(error).toBeInstanceOf(LogError)
  return error
}

const line = (second: number, request = 'GET /a HTTP/1.1') =>
  `192.0.2.1 - - [17/May/2015:10:05:${String(second % 60).padStart(2, '0')} +0000] "${request}" 200 12 "-" "curl/8.0"\n`
const many = (count: number) => Array.from({ length: count }, () => line(3))

/** Bytes that look random, always the same. */
const noise = Buffer.from(
  Array.from({ length: 5000 }, (_, index) => (index * index * 31 + index) % 256),
)

test.skipIf(process.platform === 'win32')(
  'A named pipe is read once, and completely.',
  async () => {
    const path = join(folder, 'pipe')
    execFileSync('mkfifo', [path])
    const writing = writeFile(path, many(9_000).join(''))
    const log = await openLog([path])
    let count = 0
    for await (const list of log.lines()) count += list.length
    await writing
    expect(count).toBe(9_000)
  },
)

test('An error shows names of fields and files without the characters that command a terminal.', async () => {
  const hostile = '\u001b]0;evil\u0007\u009b2J\u202e\u2028'
  const path = join(folder, `log${hostile}`)
  await writeFile(path, `${JSON.stringify({ [`a${hostile}\n`]: 1, time: 1 })}\n`)
  const messageOf = (name: string) =>
    openLog([name]).then(
      () => '',
      ({ message }: LogError) => message,
    )
  const [fields, gone] = [await messageOf(path), await messageOf(`${path}.gone`)]
  expect(fields).toContain('The fields are a')
  expect(gone).toContain('There is no file')
  for (const one of [fields, gone]) expect(one).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
})

test.each([
  ['Envoy', '- 0 512 14 9', '"10.0.0.9:80"'],
  [
    'Istio',
    '- via_upstream - "-" 0 512 14 9',
    '"10.0.0.9:80" out 10.0.0.2:1 10.0.0.3:2 10.0.0.4:3 - -',
  ],
])(
  'A client of %s cannot move the fields of its line with quotes, which the server does not escape.',
  async (_, before, after) => {
    const of = (forwarded: string, agent = 'curl') =>
      `[2026-01-01T00:00:00.000Z] "GET /a HTTP/1.1" 200 ${before} "${forwarded}" "${agent}" "id" "a.example" ${after}\n`
    const start = 'The proxy starts\n'
    const hostile = [
      of('192.0.2.99" "x" "id" "b.example" "h,192.0.2.1'),
      of('192.0.2.99" "x,192.0.2.1'),
      of('192.0.2.1', 'x" "id" "b.example'),
    ]
    const { requests, unparsed } = await read(start + of('192.0.2.1').repeat(99) + hostile.join(''))
    expect(requests).toHaveLength(99)
    expect(new Set(requests.map(({ ip }) => ip))).toEqual(new Set(['192.0.2.1']))
    expect(unparsed).toBe(4)
  },
)

describe('Logs that cannot be replayed', () => {
  test.each<[string, string | Buffer, string, RegExp]>([
    ['a binary file', noise, 'binary', /is a binary file/],
    ['an empty file', '', 'empty', /is empty/],
    ['a file of blank lines', '\n \n\r\n', 'empty', /is empty/],
    ['an empty gzip file', gzipSync(''), 'empty', /is empty/],
    [
      'a truncated gzip file',
      gzipSync(many(9).join('')).subarray(0, -12),
      'damaged',
      /incomplete.*zcat/,
    ],
    [
      'a damaged gzip file',
      Buffer.concat([gzipSync(line(3)).subarray(0, -8), Buffer.alloc(8, 1)]),
      'damaged',
      /damaged/,
    ],
    ['an archive of zip', Buffer.from('PK\x03\x04abcdefgh'), 'compression', /zip.*unzip -p/],
    ['bzip2', Buffer.from('BZh91AY&SY'), 'compression', /bzip2.*bzcat/],
    [
      'an unknown format',
      'May 17 10:05:03 host sshd[1]: hello\n',
      'unknown-format',
      /--format.*\n.*May 17/,
    ],
    ['a line of 1 MB', 'x'.repeat(1_000_000), 'unknown-format', /not known/],
    ['UTF-16', Buffer.from(`\uFEFF${line(3)}`, 'utf16le'), 'binary', /is a binary file/],
    [
      'mixed formats',
      `${line(3)}{"time":1704067200,"method":"GET","path":"/"}\n`,
      'mixed-formats',
      /mixes formats/,
    ],
    [
      'the year 1970',
      line(3).replace('2015', '1970'),
      'unparsed',
      /1 of 1 lines.*\n.*line 1: the time is in the year 1970/,
    ],
    ['the year 2106', line(3).replace('2015', '2106'), 'unparsed', /the year 2106/],
    [
      'lines without a request',
      line(3, '-').repeat(3),
      'empty',
      /None of the 3 lines.*\n.*the client sent no request/,
    ],
    [
      '6 % of lines that do not parse',
      [...many(94), ...Array(6).fill('x\n')].join(''),
      'unparsed',
      /6 of 100 lines \(6\.0 %\)/,
    ],
  ])('One message explains %s.', async (_, content, code, message) => {
    const error = await failure(read(content))
    expect(error.message).toMatch(message)
    expect(error.code).toBe(code)
  })

  test('One message explains a missing file, a folder, and a pattern without a match.', async () => {
    expect(await failure(openLog([join(folder, 'none.log')]))).toMatchObject({ code: 'no-file' })
    expect(await failure(openLog([join(folder, 'none*.log')]))).toMatchObject({ code: 'no-file' })
    await mkdir(join(folder, 'sub'), { recursive: true })
    expect(await failure(openLog([join(folder, 'sub')]))).toMatchObject({ code: 'folder' })
  })

  test('A format that the file does not have is an error.', async () => {
    const error = await failure(read(line(3), { format: 'caddy' }))
    expect(error.message).toContain('does not have the format caddy')
  })

  test('An error stops a log in the middle, before all of it is read.', async () => {
    const content = [...many(2000), ...Array(200_000).fill('damaged\n')].join('')
    const log = await openLog([await file(content)])
    const reading = (async () => {
      for await (const _ of log.lines());
    })()
    expect(await failure(reading)).toMatchObject({ code: 'unparsed' })
    expect(log.progress.bytes).toBeLessThan(log.progress.totalBytes!)
  })
})

describe('Logs with strange lines', () => {
  test.each<[string, string | Buffer]>([
    ['no line feed at the end', many(3).join('').trimEnd()],
    ['line feeds of Windows', many(3).join('').replaceAll('\n', '\r\n')],
    ['a byte order mark', `\uFEFF${many(3).join('')}`],
    ['blank lines', many(3).join('\n\n  \n')],
    ['several gzip members', Buffer.concat(many(3).map((one) => gzipSync(one)))],
  ])('A log with %s is read.', async (_, content) => {
    const { requests, lines, unparsed } = await read(content)
    expect(requests).toHaveLength(3)
    expect([lines, unparsed]).toEqual([3, 0])
    expect(requests[2]).toMatchObject({ ip: '192.0.2.1', userAgent: 'curl/8.0' })
  })

  test('Up to 5 % of lines that do not parse are counted, and the first five are kept.', async () => {
    const content = [
      ...many(200),
      'x\0y\n',
      ...Array(5).fill('\x1b[31mred\n'),
      `${'z'.repeat(1_000_000)}\n`,
      ...many(5),
    ]
    const { requests, lines, unparsed, firstUnparsed } = await read(content.join(''))
    expect([requests.length, lines, unparsed]).toEqual([205, 212, 7])
    expect(firstUnparsed).toHaveLength(5)
    expect(firstUnparsed[0]).toMatchObject({
      line: 201,
      text: 'x·y',
      reason: expect.stringContaining('no time'),
    })
    expect(firstUnparsed[1]!.text).toBe('·[31mred')
  })

  test('A line of 1 MB is counted with its reason, and the next line is read.', async () => {
    const { requests, firstUnparsed } = await read(
      [...many(20), `${'z'.repeat(1_000_000)}\n`, line(4)].join(''),
    )
    expect(requests).toHaveLength(21)
    expect(firstUnparsed[0]).toMatchObject({ line: 21, reason: 'the line is longer than 64 KiB' })
    expect(firstUnparsed[0]!.text).toHaveLength(80)
  })

  test('Any number of lines without a request does not stop a log.', async () => {
    const content = [
      line(3),
      ...Array.from({ length: 300 }, () => line(3, '\\x16\\x03\\x01')),
    ].join('')
    const { requests, withoutRequest, firstWithoutRequest } = await read(content)
    expect([requests.length, withoutRequest]).toEqual([1, 300])
    expect(firstWithoutRequest[0]!.reason).toContain('TLS handshake')
  })

  test('A byte that is not UTF-8 becomes a replacement character.', async () => {
    const content = Buffer.from(line(3).replace('curl', 'c\xffrl').replace('/a', '/\xff'), 'latin1')
    const { requests } = await read(content)
    expect(requests[0]).toMatchObject({ userAgent: 'c\uFFFDrl/8.0', target: '/%EF%BF%BD' })
  })

  test('JSON that is deeply nested, an array or a number does not parse.', async () => {
    const good = '{"time":1704067200,"method":"GET","path":"/"}\n'
    const bad = [
      '['.repeat(60_000),
      '[1]',
      '7',
      'null',
      '{"time":{},"method":"GET","path":"/"}',
      '{"method":"GET"}',
    ]
    const { requests, unparsed } = await read(good.repeat(200) + bad.join('\n'))
    expect([requests.length, unparsed]).toEqual([200, 6])
  })

  test('A damaged line of CSV does not affect others.', async () => {
    const rows = Array.from({ length: 60 }, () => '1704067200,"GET","/a,b"')
    rows[7] = '1704067200,"GET,/unclosed'
    rows[9] = '1704067200,GET'
    const { requests, unparsed, firstUnparsed } = await read(`time,method,path\n${rows.join('\n')}`)
    expect([requests.length, unparsed]).toEqual([58, 2])
    expect(firstUnparsed.map((one) => one.line)).toEqual([9, 11])
  })
})
