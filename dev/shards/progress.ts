import type { WriteStream } from 'node:tty'
import { CLEAR_LINE, progressBar } from '../project/progress-bar.ts'
import type { MoveProgress } from './move.ts'

const INTERVAL_MS = 200

/** Shows the progress of a move in one line of a terminal. Writes nothing if the stream is not a terminal. */
export function showMove(stream: Pick<WriteStream, 'isTTY' | 'write'>, clock = Date.now) {
  const startedAt = clock()
  let shownAt = 0
  return {
    show(progress: MoveProgress): void {
      const now = clock()
      if (!stream.isTTY || now - shownAt < INTERVAL_MS) return
      shownAt = now
      stream.write(CLEAR_LINE + moveText(progress, (now - startedAt) / 1000))
    },
    clear(): void {
      if (shownAt > 0) stream.write(CLEAR_LINE)
    },
  }
}

/** @param seconds since the start */
export function moveText({ read, total, moved }: MoveProgress, seconds: number): string {
  const share = total > 0 ? read / total : 1
  const rate = seconds > 0 ? `, ${Math.round(moved / seconds).toLocaleString('en')} keys/s` : ''
  return `${progressBar(share)}, ${moved.toLocaleString('en')} keys moved${rate}`
}
