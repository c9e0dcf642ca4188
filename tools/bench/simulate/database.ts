import { SLOTS, slotOf } from 'sluice-upstash-bridge'
import { lastingScript } from '../../../cli/replay/decide/lasting-script.ts'
import { codec } from '../../../cli/replay/decide/script-parts.ts'
import { StoreError } from '../../../src/core/base/errors.ts'
import type { Store, StoreRequest } from '../../../src/core/connection/store.ts'
import { divided, pack } from '../../../src/core/connection/upstash/pack.ts'
import { decode } from '../../../src/core/connection/upstash/reply.ts'
import { encode, keysOf } from '../../../src/core/connection/upstash/script.ts'
import type { BenchServer } from '../server.ts'
import type { VirtualTime } from './time.ts'

export interface Database {
  /** The store, as seen by an isolate with this round trip in ms. */
  from(rttMs: number): Store
  /** Number of HTTP requests, and of runs of the script. */
  count(): { calls: number; runs: number }
  /** The work of each master of a cluster. Empty for one database. */
  masters(): MasterLoad[]
}

/** The load of one master. */
export interface MasterLoad {
  /** Runs of the script, and decisions made in them. */
  runs: number
  decisions: number
}

/**
 * A real Redis with the real script, at a distance in virtual time. A call arrives half a round trip later, and is decided in the
 * order of arrival, by the virtual time of arrival.
 * @param masters number of masters of a Redis Cluster, each with an equal part of the slots. A call is then split by slot. 0 for one
 * database that is no cluster
 */
export function createDatabase(server: BenchServer, time: VirtualTime, masters = 0): Database {
  let calls = 0
  let runs = 0
  const loads = Array.from({ length: masters }, (): MasterLoad => ({ runs: 0, decisions: 0 }))
  const slotOfList = (list: StoreRequest[]) => (masters > 0 ? slotOf(keysOf(list)[0]!) : 0)

  async function decideEach(lists: StoreRequest[][], rttMs: number) {
    const slots = Map.groupBy(lists.keys(), (index) => slotOfList(lists[index]!))
    const packs = [...slots].flatMap(([slot, indexes]) => {
      const ofSlot = pack(indexes.map((index) => lists[index]!))
      const load = loads[Math.floor((slot * masters) / SLOTS)]
      if (load) load.runs += ofSlot.length
      if (load) load.decisions += indexes.length
      return ofSlot
    })
    calls += 1
    runs += packs.length
    const sent = time.now()
    await time.wait(rttMs / 2)
    const now = Math.floor(time.now())
    const answers = packs.map(({ requests }) =>
      server.call({
        script: lastingScript,
        ...encode(requests, now, undefined, undefined, codec),
      }),
    )
    const { promise, resolve } = Promise.withResolvers<void>()
    // Redis takes no virtual time. The event that delivers the reply waits for Redis.
    time.at(sent + rttMs, async () => {
      await Promise.all(answers)
      resolve()
    })
    await promise
    const replies = await Promise.all(answers)
    const answered = packs.flatMap((one, index) => {
      const reply = decode(replies[index], one.requests, undefined, codec)
      return divided(one, reply ?? new StoreError('bad-reply'))
    })
    const places = [...slots.values()].flat()
    return lists.map((_, index) => answered[places.indexOf(index)]!)
  }

  return {
    count: () => ({ calls, runs }),
    masters: () => loads,
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
