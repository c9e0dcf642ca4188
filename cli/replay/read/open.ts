import type { Fact, LogLine } from '../line.ts'
import { type Detected, detect } from './detect.ts'
import { findFiles, isStdin, STDIN } from './files.ts'
import { type Log, LogError, type LogOptions } from './log.ts'
import { readMap } from './map.ts'
import { merge } from './merge.ts'
import { Counter, readRequests } from './requests.ts'
import { Sorter } from './sort.ts'
import { fileSource, type Source, streamSource } from './source.ts'
import { splitLines } from './split.ts'

/**
 * Opens a log that consists of one file or several, which are merged by time. Detects the format from the first lines.
 * @param names paths and patterns; `-` is stdin, and so is an empty list
 * @throws LogError
 */
export async function openLog(names: string[], options: LogOptions = {}): Promise<Log> {
  const { format = 'auto', pattern, host } = options
  const how = pattern === undefined ? format : { pattern }
  const map = readMap(options.map)
  const parserOptions = { map, host: host?.toLowerCase() }
  const sources = await findSources(names)
  const logs: { source: Source; detected: Detected }[] = []
  for (const source of sources) {
    const lines = await firstLines(source)
    if (lines.length > 0) {
      logs.push({ source, detected: detect(source.name, lines, how, parserOptions) })
    }
  }
  if (logs.length === 0) throw empty(sources, names)
  const parsers = logs.map(({ detected }) => detected.parser)
  const counter = new Counter(totalSize(sources))
  return {
    format: [...new Set(parsers.map(({ title }) => title))].join(' and '),
    wholeSeconds: logs.some(({ detected }) => detected.wholeSeconds),
    facts: commonFacts(parsers.map(({ facts }) => facts)),
    remedyOf: (fact) => parsers.find(({ facts }) => !facts.has(fact))!.remedyOf(fact),
    chain: parsers.find(({ chain }) => chain)?.chain,
    addressMayBe: parsers.find(({ addressMayBe }) => addressMayBe)?.addressMayBe,
    mapped: new Set(map.keys()),
    first: logs.flatMap(({ detected }) => detected.requests),
    progress: counter.progress,
    lines: () => sorted(logs, counter),
  }
}

async function findSources(names: string[]): Promise<Source[]> {
  const files = (await findFiles(names.filter((name) => name !== STDIN))).map(fileSource)
  if (!isStdin(names)) return files
  if (process.stdin.isTTY) {
    throw new LogError('no-file', 'Name a log, or pipe one into the command.')
  }
  return [...files, streamSource(process.stdin)]
}

/** Characters and bytes that are read to detect the format. */
const SAMPLE = 128 * 1024
const LARGEST_SAMPLE = 64 * SAMPLE

async function firstLines(source: Source): Promise<string[]> {
  const lines: string[] = []
  let [size, bytes] = [0, 0]
  const chunks = async function* () {
    for await (const chunk of source.peek()) {
      bytes += chunk.length
      yield chunk
      if (bytes > LARGEST_SAMPLE) return
    }
  }
  for await (const list of splitLines(chunks())) {
    for (const line of list) {
      if (line.trim() === '') continue
      lines.push(line)
      size += line.length
      if (size >= SAMPLE) return lines
    }
  }
  return lines
}

const empty = (sources: Source[], names: string[]) =>
  new LogError(
    'empty',
    sources.length > 1
      ? 'All files are empty.'
      : names.length > 0
        ? `${sources[0]!.name} is empty.`
        : 'stdin is empty. Name a log, such as access.log, or pipe one into the command.',
  )

const totalSize = (sources: Source[]) =>
  sources.reduce<number | undefined>(
    (sum, { size }) => (sum === undefined || size === undefined ? undefined : sum + size),
    0,
  )

/** The facts that all files can tell. */
function commonFacts(sets: ReadonlySet<Fact>[]): ReadonlySet<Fact> {
  const [first, ...others] = sets
  if (others.length === 0) return first!
  const facts = new Set([...first!].filter((fact) => others.every((set) => set.has(fact))))
  facts.has = (fact) => sets.every((set) => set.has(fact))
  return facts
}

async function* sorted(
  logs: { source: Source; detected: Detected }[],
  counter: Counter,
): AsyncGenerator<LogLine[]> {
  const sorter = new Sorter()
  const streams = logs.map(({ source, detected }) => ({
    from: detected.first - Sorter.window,
    open: () => readRequests(source, detected.parser, counter),
  }))
  const lists = streams.length === 1 ? streams[0]!.open() : merge(streams)
  for await (const list of lists) {
    for (const line of list) sorter.add(line)
    counter.progress.late = sorter.late
    yield* sorter.take()
  }
  const last = sorter.end()
  counter.progress.late = sorter.late
  counter.end()
  yield* last
}
