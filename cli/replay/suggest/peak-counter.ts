/** The numbers of one window of a key: the window that began last, the units in it and in the one before, and the peak. */
const [WINDOW, CURRENT, PREVIOUS, PEAK, FIELDS] = [0, 1, 2, 3, 4]
const ROWS_PER_BLOCK = 4_096
const MOST = 2 ** 32 - 1

/**
 * For each key and window, the peak: the smallest limit with which the sliding window would refuse this key nothing. As long as
 * nothing is refused, the two counters do not depend on the limit, so the peak is exact. A window takes 16 bytes a key.
 */
export class PeakCounter {
  readonly windows: readonly number[]
  private readonly rows = new Map<string, number>()
  private readonly blocks: Uint32Array[] = []

  /** @param windows lengths in ms */
  constructor(windows: readonly number[]) {
    this.windows = windows
  }

  /** The number of keys. */
  get keys(): number {
    return this.rows.size
  }

  /**
   * Counts a request. Times must not decrease.
   * @param kept the units that stay charged after the response. Defaults to the cost
   */
  charge(key: string, time: number, cost: number, kept = cost): void {
    const { windows } = this
    const width = windows.length * FIELDS
    let row = this.rows.get(key)
    if (row === undefined) {
      row = this.rows.size
      this.rows.set(key, row)
      if (row % ROWS_PER_BLOCK === 0) this.blocks.push(new Uint32Array(ROWS_PER_BLOCK * width))
    }
    const block = this.blocks[Math.floor(row / ROWS_PER_BLOCK)]!
    let at = (row % ROWS_PER_BLOCK) * width
    for (let index = 0; index < windows.length; index += 1, at += FIELDS) {
      const length = windows[index]!
      const into = time % length
      const window = ((time - into) / length) >>> 0
      const last = block[at + WINDOW]!
      if (last !== window) {
        block[at + PREVIOUS] = last === (window - 1) >>> 0 ? block[at + CURRENT]! : 0
        block[at + CURRENT] = 0
        block[at + WINDOW] = window
      }
      const current = block[at + CURRENT]!
      const before = Math.ceil((block[at + PREVIOUS]! * (length - into)) / length)
      const peak = before + current + cost
      if (peak > block[at + PEAK]!) block[at + PEAK] = Math.min(peak, MOST)
      block[at + CURRENT] = Math.min(current + kept, MOST)
    }
  }

  /** The keys whose peak in one window is above a limit, the highest first. */
  above(window: number, limit: number): { key: string; peak: number }[] {
    const found: { key: string; peak: number }[] = []
    for (const [key, row] of this.rows) {
      const peak = this.peakOf(row, window)
      if (peak > limit) found.push({ key, peak })
    }
    return found.sort((one, other) => other.peak - one.peak)
  }

  private peakOf(row: number, window: number): number {
    const block = this.blocks[Math.floor(row / ROWS_PER_BLOCK)]!
    const width = this.windows.length * FIELDS
    return block[(row % ROWS_PER_BLOCK) * width + this.windows.indexOf(window) * FIELDS + PEAK]!
  }

  /** The peaks of all keys in one window, in ascending order. */
  sorted(window: number): Uint32Array {
    const peaks = new Uint32Array(this.keys)
    for (let row = 0; row < peaks.length; row += 1) peaks[row] = this.peakOf(row, window)
    return peaks.sort()
  }
}
