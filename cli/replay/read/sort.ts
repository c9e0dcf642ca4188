import type { LogLine } from '../line.ts'

/** Lines may be out of order by so many seconds. Servers log a request when it ends, and some in the order of their processes. */
const WINDOW = 60
/** A power of two above `WINDOW`: one bucket for each second of the window. */
const BUCKETS = 64
/** Bounds the memory. A line with headers counts as several, because it is much larger. */
const LARGEST = 50_000
const HEADERS_WEIGHT = 4
const LIST = 512

/** Sorts lines that are out of order by up to a minute. Keeps the order of lines with the same time. */
export class Sorter {
  /** In ms. */
  static readonly window = WINDOW * 1000
  /** Requests that came too late, and got the time of the request before them. */
  late = 0
  private readonly buckets: LogLine[][] = Array.from({ length: BUCKETS }, () => [])
  private weight = 0
  /** The first second that is not yet drained, and the newest second. */
  private first = Number.NaN
  private newest = Number.NaN
  private lastTime = Number.NEGATIVE_INFINITY
  private list: LogLine[] = []
  private full: LogLine[][] = []

  add(line: LogLine): void {
    const second = Math.floor(line.time / 1000)
    if (second < this.first) {
      this.emit(line)
      return
    }
    if (!(second <= this.newest)) this.advance(second)
    this.buckets[second % BUCKETS]!.push(line)
    this.weight += weightOf(line)
    if (this.weight > LARGEST) this.shrink()
  }

  /** The lists of lines that are in order by now. */
  take(): LogLine[][] {
    const lists = this.full
    this.full = []
    return lists
  }

  /** All remaining lines. */
  end(): LogLine[][] {
    if (this.weight > 0) this.drainUntil(this.newest + 1)
    return [...this.take(), ...(this.list.length > 0 ? [this.list] : [])]
  }

  private advance(second: number): void {
    if (Number.isNaN(this.newest)) this.first = second - WINDOW
    else this.drainUntil(second - WINDOW)
    this.newest = second
  }

  /** Drains the oldest seconds. The newest stays open, so that no later line of it is late. */
  private shrink(): void {
    while (this.weight > LARGEST / 2 && this.first < this.newest) this.drainUntil(this.first + 1)
    if (this.weight > LARGEST / 2) this.drain(this.newest)
  }

  private drainUntil(end: number): void {
    const last = Math.min(end, this.newest + 1)
    for (let second = this.first; second < last; second += 1) this.drain(second)
    this.first = Math.max(this.first, end)
  }

  private drain(second: number): void {
    const bucket = this.buckets[second % BUCKETS]!
    if (bucket.length === 0) return
    if (bucket.some((line, index) => index > 0 && line.time < bucket[index - 1]!.time)) {
      bucket.sort((a, b) => a.time - b.time)
    }
    for (const line of bucket) {
      this.weight -= weightOf(line)
      this.emit(line)
    }
    this.buckets[second % BUCKETS] = []
  }

  private emit(line: LogLine): void {
    if (line.time < this.lastTime) {
      this.late += 1
      line.time = this.lastTime
    }
    this.lastTime = line.time
    this.list.push(line)
    if (this.list.length < LIST) return
    this.full.push(this.list)
    this.list = []
  }
}

const weightOf = (line: LogLine) => (line.headers ? HEADERS_WEIGHT : 1)
