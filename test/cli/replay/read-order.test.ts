import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import * as zlib from 'node:zlib'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { LogLine } from '../../../cli/replay/line.ts'
import { openLog } from '../../../cli/replay/read/open.ts'
import { Sorter } from '../../../cli/replay/read/sort.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-order-'))
})
afterAll(() => rm(folder, { recursive: true }))

const START = Date.UTC(2024, 0)
const request = (time: number, target = '/'): LogLine => ({
  time: START + time,
  method: 'GET',
  target,
})
const json = (time: number, path = '/') =>
  `${JSON.stringify({ time: START + time, method: 'GET', path })}\n`

async function write(name: string, content: string | Buffer): Promise<string> {
  await writeFile(join(folder, name), content)
  return join(folder, name)
}

async function read(names: string[]) {
  const log = await openLog(names)
  const lines: LogLine[] = []
  for await (const list of log.lines()) lines.push(...list)
  return { lines, log }
}

/** Sorts lines by the class under test. */
function sort(lines: LogLine[]) {
  const sorter = new Sorter()
  const result: LogLine[] = []
  for (const line of lines) {
    sorter.add(line)
    result.push(...sorter.take().flat())
  }
  result.push(...sorter.end().flat())
  return { result, late: sorter.late }
}

describe('The order of lines', () => {
  test('Lines that are out of order by up to a minute are sorted, and none is lost.', () => {
    const steps = fc.array(
      fc.tuple(fc.integer({ min: 0, max: 90_000 }), fc.integer({ min: 0, max: 60_000 })),
    )
    fc.assert(
      fc.property(steps, (all) => {
        let newest = 100_000
        const lines = all.map(([step, back], index) => {
          newest += step
          return request(newest - back, `/${index}`)
        })
        const expected = lines.toSorted((a, b) => a.time - b.time)
        expect(sort(lines.map((line) => ({ ...line })))).toEqual({ result: expected, late: 0 })
      }),
      { numRuns: 500 },
    )
  })

  test('A line of the oldest second that is kept is sorted among the lines of this second.', () => {
    const { result, late } = sort([request(500), request(60_000), request(700)])
    expect(result.map(({ time }) => time - START)).toEqual([500, 700, 60_000])
    expect(late).toBe(0)
  })

  test('A line that is too late has the time of the request before it, and is counted.', () => {
    const lines = [
      request(0, '/a'),
      request(200_000, '/b'),
      request(400_000, '/c'),
      request(5_000, '/d'),
    ]
    const { result, late } = sort(lines)
    expect(result.map(({ target, time }) => [target, time - START])).toEqual([
      ['/a', 0],
      ['/b', 200_000],
      ['/d', 200_000],
      ['/c', 400_000],
    ])
    expect(late).toBe(1)
  })

  test('A second with a million requests needs a bounded buffer.', () => {
    const sorter = new Sorter()
    let [given, most] = [0, 0]
    for (let index = 0; index < 1_000_000; index += 1) {
      sorter.add(request(index % 1000))
      for (const list of sorter.take()) given += list.length
      most = Math.max(most, index - given)
    }
    for (const list of sorter.end()) given += list.length
    expect(given).toBe(1_000_000)
    expect(most).toBeLessThan(60_000)
  })
})

describe('Logs of several files', () => {
  test('Files are merged by time.', async () => {
    const names = await Promise.all(
      [0, 1, 2].map((file) =>
        write(
          `server-${file}.log`,
          Array.from({ length: 500 }, (_, index) =>
            json((index * 3 + file) * 100, `/${file}`),
          ).join(''),
        ),
      ),
    )
    const { lines } = await read(names)
    expect(lines.map(({ time }) => time - START)).toEqual(
      Array.from({ length: 1500 }, (_, index) => index * 100),
    )
    expect(lines.slice(0, 4).map(({ target }) => target)).toEqual(['/0', '/1', '/2', '/0'])
  })

  test('Rotated files are read in the order of their times, whatever the order of their names.', async () => {
    const first = await write('rotated.log.2.gz', zlib.gzipSync(json(0) + json(1000)))
    await write('rotated.log.1', json(100_000) + json(101_000))
    await write('rotated.log', json(200_000))
    await write('rotated.log.0', '')
    const { lines, log } = await read([join(folder, 'rotated.log*'), first])
    expect(lines.map(({ time }) => time - START)).toEqual([0, 1000, 100_000, 101_000, 200_000])
    expect(log.progress).toMatchObject({ requests: 5, late: 0, bytes: log.progress.totalBytes })
  })

  test('Only the facts of all files are facts of the log.', async () => {
    const combined =
      '192.0.2.1 - - [01/Jan/2024:00:00:00 +0000] "GET / HTTP/1.1" 200 1 "-" "curl"\n'
    const names = [
      await write('a.log', combined),
      await write('b.log', json(500).replace('}', ',"status":200}')),
    ]
    const { log } = await read(names)
    expect(log.format).toBe('Combined Log Format and JSON')
    expect([...log.facts]).toEqual(['status'])
    expect(log.wholeSeconds).toBe(true)
  })

  test('A reader that stops early closes the files.', async () => {
    const long = Array.from({ length: 50_000 }, (_, index) => json(index * 100)).join('')
    const log = await openLog([await write('long.log', long), await write('long2.log', long)])
    for await (const _ of log.lines()) break
    expect(log.progress.bytes).toBeLessThan(log.progress.totalBytes!)
  })

  test.runIf('zstdCompressSync' in zlib)(
    'A file that is compressed with zstd is read.',
    async () => {
      const bytes = zlib.zstdCompressSync(json(0).repeat(1000))
      expect((await read([await write('a.log.zst', bytes)])).lines).toHaveLength(1000)
      const two = Buffer.concat([bytes, bytes])
      await expect(read([await write('b.log.zst', two)])).rejects.toThrow(/several frames.*zstdcat/)
    },
  )

  test('A compressed log is read from stdin, in small pieces.', async () => {
    const module = fileURLToPath(new URL('../../../cli/replay/read/open.ts', import.meta.url))
    const script = `
      const { openLog } = await import(${JSON.stringify(module)})
      const log = await openLog([])
      let count = 0
      for await (const list of log.lines()) count += list.length
      console.log(JSON.stringify({ count, bytes: log.progress.bytes, total: log.progress.totalBytes }))`
    const child = spawn(process.execPath, ['--input-type=module', '-e', script])
    const output = child.stdout.setEncoding('utf8').toArray()
    const bytes = zlib.gzipSync(Array.from({ length: 5000 }, (_, index) => json(index)).join(''))
    for (let at = 0; at < bytes.length; at += 997) {
      const isFirst = at === 0
      child.stdin.write(bytes.subarray(at, isFirst ? 3 : at + 997))
      if (isFirst) child.stdin.write(bytes.subarray(3, 997))
    }
    child.stdin.end()
    expect(JSON.parse((await output).join(''))).toEqual({ count: 5000, bytes: bytes.length })
  })
})

describe('The Apache log of github.com/elastic/examples', () => {
  const name = fileURLToPath(new URL('./logs/apache.log.gz', import.meta.url))

  test('Each line is read, as a count that shares no code finds.', async () => {
    const { lines, log } = await read([name])
    expect(log).toMatchObject({ format: 'Combined Log Format', wholeSeconds: true })
    expect(log.progress).toMatchObject({ lines: 10_000, requests: 10_000, unparsed: 0, late: 0 })
    const texts = zlib
      .gunzipSync(await (await import('node:fs/promises')).readFile(name))
      .toString()
      .trimEnd()
      .split('\n')
    const expected = Map.groupBy(texts, (text) => text.split(' ')[0]!)
    const found = Map.groupBy(lines, ({ ip }) => ip!)
    expect(found.size).toBe(expected.size)
    for (const [ip, own] of expected) expect(found.get(ip)).toHaveLength(own.length)
    const paths = (all: string[]) => all.sort()
    expect(paths(lines.map(({ target }) => target))).toEqual(
      paths(texts.map((text) => text.split('"')[1]!.split(' ')[1]!)),
    )
    expect(lines[0]!.time).toBe(Date.UTC(2015, 4, 17, 10, 5, 0))
  })
})
