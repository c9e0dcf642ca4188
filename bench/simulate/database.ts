import { StoreError } from '../../src/base/errors.ts'
import type { Store, StoreRequest } from '../../src/store/store.ts'
import { callOf, pack, repliesOf } from '../../src/store/upstash/pack.ts'
import { script } from '../../src/store/upstash/script.ts'
import type { BenchServer } from '../server.ts'
import type { VirtualTime } from './time.ts'

/** What is stored stays a day longer than it counts: by Redis' own clock a second of virtual time may take minutes. */
const lasting = script.replace('and 0 or 60000', 'and 0 or 86400000')
if (lasting === script)
  throw new Error('the script says otherwise how long it keeps what is stored')

export interface Database {
  /** As an isolate reaches it that is so far away, there and back, ms. */
  from(rttMs: number): Store
  /** HTTP requests, and runs of the script. */
  count(): { calls: number; runs: number }
}

/**
 * A real Redis running the real script, far away in virtual time: what is sent arrives half a round trip later, in the order of
 * arrival, and is decided by that moment's clock.
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
    // Redis answers in no virtual time; the event that delivers it waits until it has.
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
