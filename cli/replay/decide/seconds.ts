import type { LogLine } from '../line.ts'

/** A line with the times at which it is decided, whole ms since the epoch. */
export interface Timed {
  line: LogLine
  /** Its place in its second, if the lines of a second are spread over it. */
  spread: number
  /** The start of its second. */
  burst: number
}

/** The most lines of a second that are kept to find their places. */
const MAX_KEPT = 50_000

/** Finds the times of lines. */
export interface Seconds {
  /** Returns the lines whose times are known. The lines of the last second are kept, because it may continue. */
  add(lines: LogLine[]): Timed[]
  /** Returns the lines that were kept. */
  rest(): Timed[]
}

/** For logs with ms: both times are that of the line. */
export const exactTimes = (): Seconds => ({
  add: (lines) =>
    lines.map((line) => {
      const time = Math.floor(line.time)
      return { line, spread: time, burst: time }
    }),
  rest: () => [],
})

/** For logs with whole seconds: the i-th of n lines of a second comes after i · 1000 / n ms. */
export function wholeSeconds(maxKept = MAX_KEPT): Seconds {
  let kept: LogLine[] = []
  /** The start of the second of the kept lines, and the ms of it that earlier lines have taken. */
  let [start, taken] = [0, 0]

  /** Spreads the kept lines over the second, or over a part of it. */
  function release(timed: Timed[], untilMs = 1000) {
    for (const [index, line] of kept.entries()) {
      const place = taken + Math.floor((index * (untilMs - taken)) / kept.length)
      timed.push({ line, spread: start + place, burst: start })
    }
    kept = []
    taken = untilMs
  }

  return {
    add(lines) {
      const timed: Timed[] = []
      for (const line of lines) {
        const second = line.time - (line.time % 1000)
        if (second !== start) {
          release(timed)
          start = second
          taken = 0
        }
        // How many lines follow is unknown. So each part of such a second gets half of what is left of it.
        if (kept.length >= maxKept) release(timed, Math.floor((taken + 1000) / 2))
        kept.push(line)
      }
      return timed
    },
    rest() {
      const timed: Timed[] = []
      release(timed)
      return timed
    },
  }
}
