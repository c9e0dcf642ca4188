import { describe, expect, test } from 'vitest'
import { progressText, showProgress } from '../../../cli/replay/progress-bar.ts'

const progress = {
  ...{ lines: 50_000, requests: 50_000, withoutRequest: 0, firstWithoutRequest: [], unparsed: 0 },
  ...{ firstUnparsed: [], late: 0, bytes: 250, totalBytes: 1_000 },
}

describe('The progress bar', () => {
  test('It shows the share of the bytes, the rate and the time left.', () => {
    expect(progressText(progress, 10)).toBe(
      '██████░░░░░░░░░░░░░░░░░░ 25 %, 50,000 lines, 5,000 lines/s, 30 s left',
    )
    expect(progressText(progress, 100)).toContain('5 min 0 s left')
  })

  test('Without a total, as for the standard input, it shows lines and the rate.', () => {
    expect(progressText({ ...progress, totalBytes: undefined }, 10)).toBe(
      '50,000 lines, 5,000 lines/s',
    )
  })

  test.each([
    [true, ['\r\u001b[K██████', '\r\u001b[K']],
    [false, []],
  ])(
    'On a terminal (%j) it writes at most five times a second, and removes itself.',
    (isTTY, written) => {
      const texts: string[] = []
      let now = 0
      const stream = { isTTY, write: (text: string) => texts.push(text) > 0 }
      const bar = showProgress(stream as never, () => now)
      for (now = 150; now < 390; now += 10) bar.show(progress)
      bar.clear()
      expect(texts.map((text) => text.slice(0, 10).replace(/ .*/, ''))).toEqual(
        written.map((text) => text.slice(0, 10)),
      )
    },
  )
})
