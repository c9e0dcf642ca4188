/** How many calls to make, and how many at once. */
export interface Load {
  calls: number
  atOnce: number
}

const KEYS = 1_000

/** Makes calls with many keys. Returns the duration of each, ms. */
export async function make(
  call: (key: string) => Promise<unknown>,
  { calls, atOnce }: Load,
): Promise<Float64Array> {
  const times = new Float64Array(calls)
  let next = 0
  async function lane() {
    while (next < calls) {
      const own = next++
      const begun = performance.now()
      await call(`client-${own % KEYS}`)
      times[own] = performance.now() - begun
    }
  }
  await Promise.all(Array.from({ length: atOnce }, lane))
  return times
}
