import type { WriteStream } from 'node:tty'
import type { Progress } from './read/log.ts'

const INTERVAL_MS = 200
const BAR_WIDTH = 24
/** Returns a terminal's cursor to the beginning of an empty line. */
const CLEAR_LINE = '\r\u001b[K'

/** Shows the progress in one line of a terminal. Writes nothing if the stream is not a terminal. */
export function showProgress(stream: Pick<WriteStream, 'isTTY' | 'write'>, clock = Date.now) {
  const startedAt = clock()
  let shownAt = 0
  return {
    show(progress: Readonly<Progress>): void {
      const now = clock()
      if (!stream.isTTY || now - shownAt < INTERVAL_MS) return
      shownAt = now
      stream.write(CLEAR_LINE + progressText(progress, (now - startedAt) / 1_000))
    },
    clear(): void {
      if (shownAt > 0) stream.write(CLEAR_LINE)
    },
  }
}

/** @param seconds since the start */
export function progressText({ lines, bytes, totalBytes }: Progress, seconds: number): string {
  const count = `${lines.toLocaleString('en')} lines`
  const rate = seconds > 0 ? `, ${Math.round(lines / seconds).toLocaleString('en')} lines/s` : ''
  if (!totalBytes) return count + rate
  const share = Math.min(1, bytes / totalBytes)
  const left = share > 0 ? `, ${duration((seconds * (1 - share)) / share)} left` : ''
  return `${progressBar(share)}, ${count}${rate}${left}`
}

/** A bar with a percentage. @param share from 0 to 1 */
function progressBar(share: number): string {
  const filled = Math.round(share * BAR_WIDTH)
  return `${'█'.repeat(filled)}${'░'.repeat(BAR_WIDTH - filled)} ${Math.floor(share * 100)} %`
}

function duration(seconds: number): string {
  const whole = Math.ceil(seconds)
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`
}
