import type { LogLine } from '../line.ts'

/** The lines of one file, in the order of the file. */
export interface Stream {
  /** No line is older, as far as the first lines show. The file is opened at this time. */
  from: number
  open(): AsyncIterator<LogLine[]>
}

interface Open {
  lines: AsyncIterator<LogLine[]>
  list: LogLine[]
  index: number
}

/**
 * Merges files by the times of their next lines, so that lines which are out of order in a file are out of order by as much in the
 * result.
 */
export async function* merge(streams: Stream[]): AsyncGenerator<LogLine[]> {
  const waiting = streams.toReversed().sort((a, b) => b.from - a.from)
  const open: Open[] = []
  try {
    while (waiting.length > 0 || open.length > 0) {
      const [first, limit] = firstTwo(open, waiting.at(-1)?.from ?? Number.POSITIVE_INFINITY)
      if (!first) {
        const lines = waiting.pop()!.open()
        await advance({ lines, list: [], index: 0 }, open)
        continue
      }
      const { list, index } = first
      let end = index
      while (end < list.length && list[end]!.time <= limit) end += 1
      yield index === 0 && end === list.length ? list : list.slice(index, end)
      first.index = end
      if (end === list.length) {
        open.splice(open.indexOf(first), 1)
        await advance(first, open)
      }
    }
  } finally {
    for (const { lines } of open) await lines.return?.()
  }
}

/** The file with the oldest next line, and the time at which another one follows. Returns no file if the next one has to be opened. */
function firstTwo(open: Open[], from: number): [first: Open | undefined, limit: number] {
  let first: Open | undefined
  let [time, limit] = [from, from]
  for (const one of open) {
    const next = one.list[one.index]!.time
    if (next < time) {
      limit = first ? time : from
      first = one
      time = next
    } else if (next < limit) limit = next
  }
  return [first, limit]
}

/** Reads the next list of a file, and adds the file to the open ones unless it has ended. */
async function advance(one: Open, open: Open[]): Promise<void> {
  for (;;) {
    const { value, done } = await one.lines.next()
    if (done) return
    if (value.length === 0) continue
    open.push({ lines: one.lines, list: value, index: 0 })
    return
  }
}
