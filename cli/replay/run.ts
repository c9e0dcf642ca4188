/** Replays a log: reads it once, and passes its requests to everything that needs them. */
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { finished } from 'node:stream/promises'
import type { ConfigOptions } from '../../src/core/config/options.ts'
import { parseConfig } from '../../src/core/config/parse.ts'
import { defaultFields } from '../../src/features/defaults.ts'
import { createAnonymizer, writeLine } from './anonymize.ts'
import { clientsOf } from './decide/clients.ts'
import { createReplayer, type Replayer } from './decide/replayer.ts'
import type { Decided } from './decide/verdict.ts'
import { createExpectationCounter } from './expect/expectations.ts'
import type { LogLine } from './line.ts'
import type { Log, LogOptions, Progress } from './read/log.ts'
import { openLog } from './read/open.ts'
import { createTally } from './report/tally.ts'
import type { ReplayReport } from './report/types.ts'
import { createSuggester, type SuggestOptions } from './suggest/suggest.ts'

/** A configuration as its file exports it. It parses. */
export interface NamedConfig {
  file: string
  options: ConfigOptions
}

export interface ReplayOptions {
  /** Paths and patterns; `-` is the standard input. */
  files: string[]
  log?: LogOptions
  config: NamedConfig
  /** The other configuration of a comparison. */
  against?: NamedConfig | undefined
  /** Decides with Redis even if the memory can. Defaults to false. */
  exact?: boolean | undefined
  suggest?: SuggestOptions | undefined
  /** The file that gets the anonymized log. */
  anonymize?: string | undefined
  /** Called when the log is open, and often while it is read. */
  onProgress?: ((progress: Log['progress'], log: Log) => void) | undefined
  /** Ends the replay early. The report then has the requests so far. */
  signal?: AbortSignal | undefined
}

/** @throws Error with a message for the user */
export async function replay(options: ReplayOptions): Promise<ReplayReport> {
  const { files, config, against, exact = false, suggest, signal, onProgress } = options
  const log = await openLog(files, options.log)
  const parsed = (against ? [config, against] : [config]).map(({ options }) =>
    parseConfig(options, defaultFields),
  )
  const clients = parsed.map((one) => clientsOf(one, log))
  const facts = clients.map(({ known }) => ({ ...known, wholeSeconds: log.wholeSeconds }))
  const suggester = suggest && createSuggester(config.options, facts[0]!, suggest)
  const expected = createExpectationCounter(config.options, facts[0]!)
  const replayers: Replayer[] = []
  const writer = options.anonymize === undefined ? undefined : anonymizedLog(options.anonymize)
  try {
    for (const [index, one] of parsed.entries()) {
      replayers.push(await createReplayer(one, facts[index]!, { exact }))
    }
    const [own, other] = replayers as [Replayer, Replayer?]
    const tally = createTally({ policies: replayed(parsed[0]!.policies, own) })
    /** The decisions on the lines before. Redis makes them while the next lines are read. */
    let before: Promise<Decided[][]> = Promise.resolve([[]])
    async function count(decide: (replayer: Replayer, index: number) => Promise<Decided[]>) {
      const decided = Promise.all(replayers.map(decide))
      decided.catch(() => {}) // thrown after the next lines
      const [own, other] = await before
      tally.add(own!, other)
      await expected.add(own!)
      before = decided
    }
    onProgress?.(log.progress, log)
    for await (const lines of untilStopped(log.lines(), signal)) {
      const seen = clients.map((one) => lines.map(one.of))
      await count((replayer, index) => replayer.decide(seen[index]!))
      await suggester?.add(seen[0]!)
      await writer?.write(seen[0]!)
      onProgress?.(log.progress, log)
    }
    await count((replayer) => replayer.finish())
    await count(async () => [])
    const suggestion = suggester?.result()
    const expectations = expected.result()
    return tally.result({
      config: config.file,
      source: sourceOf(log, files, signal?.aborted ?? false),
      engine: own.engine,
      notReplayed: own.notReplayed,
      notes: [...clients[0]!.notes, ...own.notes],
      ...(other && {
        against: { config: against!.file, engine: other.engine, notReplayed: other.notReplayed },
      }),
      ...(expectations.length > 0 && { expectations }),
      ...(suggestion && { suggestion }),
    })
  } finally {
    await Promise.all([...replayers.map((one) => one.close()), writer?.close()])
  }
}

/** The policies that are not left out. */
const replayed = <Policy extends { name: string }>(
  policies: Policy[],
  { notReplayed }: Replayer,
): Policy[] => policies.filter(({ name }) => !notReplayed.some(({ policy }) => policy === name))

/** Ends with the signal, also while it waits for input. */
async function* untilStopped<Item>(items: AsyncIterable<Item>, signal?: AbortSignal) {
  const iterator = items[Symbol.asyncIterator]()
  while (!signal?.aborted) {
    // Not `Promise.race`: a promise that never settles would hold all items.
    const next = await new Promise<IteratorResult<Item> | undefined>((resolve, reject) => {
      const stop = () => resolve(undefined)
      signal?.addEventListener('abort', stop, { once: true })
      iterator
        .next()
        .finally(() => signal?.removeEventListener('abort', stop))
        .then(resolve, reject)
    })
    if (!next || next.done) return
    yield next.value
  }
}

const sourceOf = (
  { format, wholeSeconds, progress }: Log,
  files: string[],
  interrupted: boolean,
) => {
  const { lines, unparsed, withoutRequest, firstUnparsed, late }: Progress = progress
  const counts = { lines, unparsed, withoutRequest, firstUnparsed, late }
  return { files, format, wholeSeconds, ...counts, interrupted }
}

function anonymizedLog(file: string) {
  const anonymize = createAnonymizer()
  const stream = createWriteStream(file)
  stream.on('error', () => {}) // `write` and `close` throw it
  return {
    async write(lines: LogLine[]) {
      if (stream.errored) throw stream.errored
      const text = lines.map((line) => writeLine(anonymize(line))).join('')
      if (!stream.write(text)) await once(stream, 'drain')
    },
    async close() {
      stream.end()
      await finished(stream)
    },
  }
}
