import { randomUUID } from 'node:crypto'
import { script } from '../../../cli/replay/decide/script-parts.ts'
import type { Policy } from '../../../src/core/config/parse.ts'
import type { StoreState } from '../../../src/core/connection/store.ts'
import { decode, encode } from '../../../test/support/coding.ts'
import type { BenchServer } from '../server.ts'

/** The start of a window of any size, so that each run has the same windows. */
const START = Date.UTC(2026, 0, 1)

export interface Played {
  /** Times in ms from the start. */
  admitted: number[]
  refused: number[]
  /** The remaining units, at each time at which they change. */
  remaining: { at: number; units: number }[]
}

/** Sends each request to the real script, and peeks whenever `remaining` grows in between. */
export async function play(
  server: BenchServer,
  policy: Policy,
  traffic: number[],
  end: number,
): Promise<Played> {
  const subject = randomUUID()

  async function ask(mode: 'take' | 'peek', at: number): Promise<StoreState> {
    const requests = [{ mode, limits: [{ subject, terms: policy, cost: 1 }] }]
    const call = { script, ...encode(requests, START + at) }
    return decode(await server.call(call), requests)!.states[0]![0]!
  }

  const played: Played = { admitted: [], refused: [], remaining: [] }
  const note = (at: number, { remaining: units }: StoreState) => {
    if (played.remaining.at(-1)?.units !== units) played.remaining.push({ at, units })
  }
  note(0, await ask('peek', 0))
  for (const [index, at] of traffic.entries()) {
    let state = await ask('take', at)
    played[state.allowed ? 'admitted' : 'refused'].push(at)
    note(at, state)
    let time = at
    while (state.nextAfterMs > 0 && time + state.nextAfterMs < (traffic[index + 1] ?? end)) {
      time += state.nextAfterMs
      state = await ask('peek', time)
      note(time, state)
    }
  }
  return played
}

/** The maximum number of admitted requests in any half-open interval of `windowMs`. */
export function mostWithin(windowMs: number, admitted: number[]): number {
  const from = (start: number) => admitted.filter((at) => at >= start && at < start + windowMs)
  return Math.max(...admitted.map((start) => from(start).length))
}
