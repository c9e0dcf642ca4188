import { StoreError } from '../../src/base/errors.ts'
import type { Store, StoreRequest } from '../../src/store/store.ts'
import { callOf, pack, repliesOf } from '../../src/store/upstash/pack.ts'
import { script } from '../../src/store/upstash/script-text.ts'
import type { BenchServer } from '../server.ts'
import type { VirtualTime } from './time.ts'

/** The script with a day of additional TTL: a second of virtual time may take minutes by the clock of Redis. */
const lasting = script.replace('and 0 or 60000', 'and 0 or 86400000')
if (lasting === script)
  throw new Error(
    'The text that sets the TTL is not in the script: update bench/simulate/database.ts',
  )

export interface Database {
  /** The store, as seen by an isolate with this round trip in ms. */
  from(rttMs: number): Store
  /** Number of HTTP requests, and of runs of the script. */
  count(): { calls: number; runs: number }
}

/**
 * A real Redis with the real script, at a distance in virtual time. A call arrives half a round trip later, and is decided in the
 * order of arrival, by the virtual time of arrival.
 */
export function createDatabase(server: BenchServer, time: VirtualTime): Database {
  let calls = 0
  let runs = 0

  async function decideEach(lists: StoreRequest[][], rttMs: number) {
    const packs = pack(lists)
    calls += 1
    runs += packs.length
    const sent = time.now()
    await time.wait(rttMs / 2)
    const answers = packs.map((one) =>
      server.call({ script: lasting, ...callOf(one, Math.floor(time.now())) }),
    )
    const { promise, resolve } = Promise.withResolvers<void>()
    // Redis takes no virtual time. The event that delivers the reply waits for Redis.
    time.at(sent + rttMs, async () => {
      await Promise.all(answers)
      resolve()
    })
    await promise
    const replies = await Promise.all(answers)
    return packs.flatMap((one, index) => repliesOf(one, replies[index] as number[]))
  }

  return {
    count: () => ({ calls, runs }),
    from: (rttMs) => ({
      decideEach: (lists) => decideEach(lists, rttMs),
      async decide(requests) {
        const [reply] = await decideEach([requests], rttMs)
        if (reply instanceof StoreError) throw reply
        return reply!
      },
    }),
  }
}
