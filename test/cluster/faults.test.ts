/** Decisions while a slot of the cluster moves, and while the network between its nodes is cut. */

import { setTimeout as sleep } from 'node:timers/promises'
import { startBridge } from 'sluice-upstash-bridge'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { UpstashOptions } from '../../src/core/connection/upstash/upstash.ts'
import { hashedSubjects } from '../../src/core/decide/subject.ts'
import { cluster } from '../../src/features/cluster/index.ts'
import { createSluice } from '../../src/hosts/app/sluice.ts'
import { slotOf } from '../../src/stores/cluster/cluster.ts'
import { redis } from '../../src/stores/redis.ts'
import { masterOf, subjectAt, useCluster } from '../support/cluster.ts'
import { concurrency } from '../support/features.ts'
import { clusterClients } from '../support/redis-clients.ts'
import { policy, row, take } from '../support/split-redis.ts'
import { newSubject } from '../support/subjects.ts'
import { startNetwork } from './cluster-network.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 })

/** How long a node may stay silent until the others declare it failed, ms. Longer than a stall of a busy machine. */
const NODE_TIMEOUT = 3_000
const { running, newStore } = useCluster(NODE_TIMEOUT)

const LIMIT = 60
const terms = { ...policy, limit: LIMIT, burst: LIMIT, windowMs: 86_400_000 }
const MAX_IN_FLIGHT = 200

interface Made {
  subjects: string[]
  /** When the decision was sent and answered, ms of `performance.now()`. */
  sent: number
  answered: number
  outcome: 'admitted' | 'refused' | `failed: ${string}`
}

/** Sends decisions on three isolates at a fixed rate, for each of the lists of subjects in turn. */
function startTraffic(perSecond: number, lists: string[][], change: Partial<UpstashOptions> = {}) {
  const isolates = [newStore(change), newStore(change), newStore(change)]
  const made: Made[] = []
  const pending = new Set<Promise<unknown>>()
  const start = performance.now()
  let next = 0
  const timer = setInterval(() => {
    const due = Math.floor(((performance.now() - start) / 1000) * perSecond)
    for (; next < due; next++) {
      if (pending.size >= MAX_IN_FLIGHT) continue
      const subjects = lists[next % lists.length]!
      const { store, waitUntil } = isolates[next % 3]!
      const sent = performance.now()
      const deciding = store
        .decide([take(...subjects.map((one) => row(one, { terms })))], { waitUntil })
        .then(
          ({ states }) => (states.flat().every(({ allowed }) => allowed) ? 'admitted' : 'refused'),
          (error) => `failed: ${error.message}` as const,
        )
        .then((outcome) => {
          made.push({ subjects, sent, answered: performance.now(), outcome })
          pending.delete(deciding)
        })
      pending.add(deciding)
    }
  }, 5)
  return {
    made,
    /** Waits for this number of further decisions. */
    async more(count: number) {
      const enough = made.length + count
      await expect.poll(() => made.length, { timeout: 40_000 }).toBeGreaterThan(enough)
    },
    async stop() {
      clearInterval(timer)
      while (pending.size > 0) await Promise.all(pending)
      for (const { settled } of isolates) await settled()
    },
  }
}

const count = (made: Made[], outcome: Made['outcome'], subject: string) =>
  made.filter((one) => one.outcome === outcome && one.subjects.includes(subject)).length

const failures = (made: Made[]) =>
  made.flatMap(({ outcome }) => (outcome.startsWith('failed') ? outcome : []))

/** The units of a subject that the cluster has counted. */
async function counted(subject: string) {
  const peek = { mode: 'peek' as const, limits: [row(subject, { terms })] }
  const { states } = await newStore().store.decide([peek])
  return LIMIT - states[0]![0]!.remaining
}

test.each([['the bridge', undefined], ...Object.entries(clusterClients)] as const)(
  'A slot that moves at 200 decisions a second through %s fails no decision, and no limit is exceeded.',
  async (_, open) => {
    const client = open?.(running.admin.urls)
    if (client) {
      onTestFinished(client.close)
      await expect.poll(client.isReady).toBe(true)
    }
    const first = subjectAt(0)
    const slot = slotOf(first)
    const moving = [first]
    while (moving.length < 4) {
      const subject = newSubject()
      if (slotOf(subject) === slot) moving.push(subject)
    }
    // Alone, and together with a key on another master.
    const others = moving.map(() => subjectAt(1))
    const lists = moving.flatMap((one, index) => [[one], [one, others[index]!]])
    const { admin } = running
    const change = client && { send: redis(client.client).connect({}) }
    const traffic = startTraffic(200, lists, change)
    await traffic.more(100)
    for (const [from, to] of [
      [0, 1],
      [1, 2],
    ] as const) {
      await admin.beginMove(slot, from, to)
      while (await admin.moveKeys(slot, from, to, 1)) await traffic.more(10)
      await admin.endMove(slot, to)
    }
    await traffic.more(200)
    await traffic.stop()
    expect(await admin.ownerOf(slot, 0)).toBe(2)
    expect(failures(traffic.made)).toEqual([])
    for (const subject of [...moving, ...others]) {
      const admitted = count(traffic.made, 'admitted', subject)
      expect(admitted).toBeLessThanOrEqual(LIMIT)
      expect(await counted(subject)).toBe(admitted)
    }
  },
)

test.each([
  ['by onStoreError', 'store-error'],
  ['by another limit', 'limited'],
])(
  'A slot that a node takes after a stall is released if the request was refused %s.',
  async (_, reason) => {
    const bridge = await startBridge({ cluster: running.admin.urls, pipelineTimeout: 500 })
    onTestFinished(() => bridge.close())
    const sluice = createSluice({
      use: [cluster(), concurrency()],
      deadline: '10s',
      policies: [
        {
          name: 'uploads',
          algorithm: 'concurrency',
          limit: 1,
          window: '10m',
          key: 'header:x-user',
          onStoreError: 'deny',
        },
        { name: 'tenant', limit: 1, window: '1h', key: 'header:x-tenant', onStoreError: 'deny' },
      ],
    })
    const env = { UPSTASH_REDIS_REST_URL: bridge.url, UPSTASH_REDIS_REST_TOKEN: bridge.token }
    /** A value whose key belongs to this master. */
    const name = hashedSubjects(bridge.token)
    const valueAt = async (master: number, header: string) => {
      for (;;) {
        const value = newSubject()
        if (masterOf(await name([[`header:${header}`, value]])) === master) return value
      }
    }
    const newTenant = () => valueAt(1, 'x-tenant')
    const upload = async (user: string, tenant: string) => {
      const headers = { 'x-user': user, 'x-tenant': tenant }
      const { decision } = await sluice.check(new Request('https://example.com/', { headers }), {
        env,
      })
      return decision.reason
    }
    const exhausted = await newTenant()
    expect(await upload(await valueAt(0, 'x-user'), exhausted)).toBe('within-limit')

    const [user, tenant] = [await valueAt(0, 'x-user'), await newTenant()]
    await running.admin.ask(0, 'CLIENT', 'PAUSE', '2500', 'ALL')
    expect(await upload(user, reason === 'limited' ? exhausted : tenant)).toBe(reason)
    await expect.poll(async () => upload(user, await newTenant())).toBe('within-limit')
  },
)

test.skipIf(process.platform !== 'linux')(
  'A partition loses only the decisions of the master that was cut off, and after it heals every limit holds.',
  async (context) => {
    const { admin } = running
    const network = await startNetwork(admin)
    await running.bridge.close()
    running.bridge = await startBridge({ cluster: admin.urls, pipelineTimeout: 2_000 })
    onTestFinished(() => network.close())
    // A failed run may have swapped the roles of the two nodes.
    const isMaster = (await network.roleOf(1)).includes('role:master')
    const [cut, replica] = isMaster ? [1, 4] : [4, 1]
    const mine = Array.from({ length: 8 }, () => subjectAt(1))
    const others = Array.from({ length: 8 }, (_, index) => subjectAt(index % 2 ? 0 : 2))
    const lists = [...mine, ...others].map((one) => [one])

    const before = startTraffic(200, lists)
    await before.more(150)
    await before.stop()
    expect(await admin.ask(cut, 'WAIT', '1', '10000')).toBe(1) // the replica has all decisions so far

    const traffic = startTraffic(200, lists)
    await sleep(0)
    network.isolate(cut)
    const cutAt = performance.now()
    await expect
      .poll(() => network.roleOf(replica), { timeout: 40_000, interval: 20 })
      .toContain('role:master')
    const promotedAt = performance.now()
    await traffic.more(300)
    network.heal()
    await expect
      .poll(() => network.roleOf(cut), { timeout: 40_000, interval: 50 })
      .toMatch(/role:slave[\s\S]*master_link_status:up/)
    const healedAt = performance.now()
    // Until each limit is used up, and refuses.
    await expect
      .poll(() => mine.every((one) => count(traffic.made, 'refused', one) > 0), { timeout: 40_000 })
      .toBe(true)
    await traffic.stop()

    const { made } = traffic
    // The other masters decide all requests, although they share batches with keys of the master that is cut off.
    const ofOthers = made.filter(({ subjects: [one] }) => others.includes(one!))
    expect(failures(ofOthers)).toEqual([])
    for (const subject of others) {
      const admitted = count([...before.made, ...made], 'admitted', subject)
      expect([admitted, await counted(subject)]).toEqual([Math.min(LIMIT, admitted), admitted])
    }
    let [over, lost] = [0, 0]
    for (const subject of mine) {
      // The cut master may still answer decisions that were sent before the promotion.
      const certain = made.filter(({ sent }) => sent > promotedAt)
      const inDoubt = made.filter(({ sent }) => sent <= promotedAt)
      const kept = count([...before.made, ...certain], 'admitted', subject)
      const doubtful = count(inDoubt, 'admitted', subject)
      const total = await counted(subject)
      expect(kept).toBeLessThanOrEqual(total)
      expect(total).toBeLessThanOrEqual(LIMIT)
      lost += kept + doubtful - total
      over += Math.max(0, kept + doubtful - LIMIT)
      expect(kept + doubtful - LIMIT).toBeLessThanOrEqual(doubtful)
    }
    const lastLost = Math.max(
      ...made
        .filter(({ sent, outcome }) => sent <= promotedAt && outcome === 'admitted')
        .filter(({ subjects: [one] }) => mine.includes(one!))
        .map(({ answered }) => answered - cutAt),
    )
    const failed = failures(made).length
    const figures = { decisions: made.length, failed, over, lost }
    const times = {
      'node timeout': NODE_TIMEOUT,
      'promoted after': Math.round(promotedAt - cutAt),
      'last decision of the cut master after': Math.round(lastLost),
      'healed after': Math.round(healedAt - cutAt),
    }
    await context.annotate(JSON.stringify({ ...figures, ...times }))
  },
)
