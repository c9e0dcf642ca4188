/** A Redis Cluster of six nodes behind a bridge, and stores in front of it. */
import { type Bridge, startBridge } from 'sluice-upstash-bridge'
import { afterAll, beforeAll } from 'vitest'
import { allParts } from '../../cli/replay/decide/script-parts.ts'
import { type Admin, startAdmin } from '../../packages/upstash-bridge/test/cluster-admin.ts'
import type { StoreError } from '../../src/core/base/errors.ts'
import { connect } from '../../src/core/connection/connection.ts'
import { withDeadline } from '../../src/core/connection/deadline.ts'
import type { Store } from '../../src/core/connection/store.ts'
import {
  createUpstashStore,
  type UpstashOptions,
} from '../../src/core/connection/upstash/upstash.ts'
import { withFallback } from '../../src/core/fallback/fallback.ts'
import { createLocalStore } from '../../src/core/fallback/local.ts'
import { withLeases } from '../../src/features/leases/leases.ts'
import { bySlot, createCluster, slotOf } from '../../src/stores/cluster/cluster.ts'
import { newSubject } from './subjects.ts'

/**
 * Starts a cluster for the tests of one file.
 * @param nodeTimeout how long a node may stay silent until the others declare it failed, ms
 */
export function useCluster(nodeTimeout = 1_500) {
  const running = {} as { admin: Admin; bridge: Bridge }

  beforeAll(async () => {
    running.admin = await startAdmin(nodeTimeout)
    running.bridge = await startBridge({ cluster: running.admin.urls })
  })
  afterAll(async () => {
    await running.bridge?.close()
    await running.admin?.stop()
  })

  /**
   * The store of an isolate, with its background work.
   * @param clock decides which requests leave in the same millisecond. Defaults to the clock of this machine
   */
  function newStore(change: Partial<UpstashOptions> = {}, clock = Date.now) {
    const background: Promise<unknown>[] = []
    const refunded: (string[] | StoreError)[] = []
    const { url, token } = running.bridge
    const upstash = createUpstashStore({ url, token, deadlineMs: 10_000, lua: allParts, ...change })
    const local = createLocalStore()
    const stack = withFallback(withDeadline(withLeases(connect(bySlot(upstash), { clock }))), {
      local,
      onStoreError() {},
      onRefund() {},
    })
    return {
      upstash,
      store: patient(
        createCluster(stack, (subjects, error) => void refunded.push(error ?? subjects)),
      ),
      refunded,
      waitUntil: (promise: Promise<unknown>) => void background.push(promise),
      async settled() {
        while (background.length > 0) await background.shift()
      },
    }
  }

  /** The number of HTTP requests to the bridge while `run` runs. */
  const httpOf = async (run: () => Promise<unknown>) => {
    const total = () =>
      Object.values(running.bridge.stats()).reduce((sum, { http }) => sum + http, 0)
    const before = total()
    await run()
    return total() - before
  }

  return { running, newStore, httpOf }
}

/** A store with a deadline of 10 s, for a busy machine. */
const patient = (store: Store): Store => ({
  decide: (list, options) => store.decide(list, { deadlineMs: 10_000, ...options }),
  decideEach: (lists, options) => store.decideEach(lists, { deadlineMs: 10_000, ...options }),
})

const MASTERS = 3

/** The master of a new cluster that has the keys of this subject, from 0 to 2. */
export const masterOf = (subject: string) => Math.floor((slotOf(subject) * MASTERS) / 16_384)

/** A new subject whose keys belong to this master. */
export function subjectAt(master: number): string {
  for (;;) {
    const subject = newSubject()
    if (masterOf(subject) === master) return subject
  }
}
