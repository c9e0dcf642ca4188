/** `redis(client)` with clients of Sentinels, while a replica takes the place of its master. */
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { startSentinels } from '../../packages/upstash-bridge/test/sentinels.ts'
import { redisClients, sentinelClients, storeOf } from '../support/redis-clients.ts'
import { policy, row, take } from '../support/split-redis.ts'
import { newSubject } from '../support/subjects.ts'

vi.setConfig({ testTimeout: 120_000 })

let sentinels: Awaited<ReturnType<typeof startSentinels>>
beforeAll(async () => {
  sentinels = await startSentinels()
}, 90_000)
afterAll(() => sentinels?.stop())

const LIMIT = 10
const terms = { ...policy, limit: LIMIT, burst: LIMIT }

/** Sends a decision every 5 ms, each for a subject of its own. */
function startTraffic(store: ReturnType<typeof storeOf>) {
  const made: { subject: string; sent: number; isCharged: boolean }[] = []
  const pending = new Set<Promise<unknown>>()
  const timer = setInterval(() => {
    if (pending.size > 100) return
    const subject = newSubject()
    const sent = performance.now()
    const deciding: Promise<unknown> = store
      .decide([take(row(subject, { terms }))], { deadlineMs: 1_000 })
      .then(
        () => made.push({ subject, sent, isCharged: true }),
        () => made.push({ subject, sent, isCharged: false }),
      )
      .finally(() => pending.delete(deciding))
    pending.add(deciding)
  }, 5)
  return {
    made,
    async stop() {
      clearInterval(timer)
      await Promise.all(pending)
    },
  }
}

test('After a failover, clients of Sentinels ask the new master, and no call is charged twice.', async (context) => {
  const all = Object.values(sentinelClients).map((open) => open(sentinels.urls))
  for (const { close } of all) onTestFinished(close)
  await expect.poll(() => all.map(({ isReady }) => isReady())).toEqual([true, true])
  const traffic = all.map(({ client }) => startTraffic(storeOf(client)))
  for (const { made } of traffic) await expect.poll(() => made.length).toBeGreaterThan(100)
  await sentinels.failOver()
  const promoted = performance.now()
  const decided = ({ made }: (typeof traffic)[number]) =>
    made.filter(({ sent, isCharged }) => sent > promoted && isCharged).length
  for (const one of traffic)
    await expect.poll(() => decided(one), { timeout: 60_000 }).toBeGreaterThan(50)
  for (const one of traffic) await one.stop()

  const direct = redisClients.redis!(sentinels.replica.url)
  onTestFinished(direct.close)
  const made = traffic.flatMap((one) => one.made)
  const peeks = made.map(({ subject }) => [
    { mode: 'peek' as const, limits: [row(subject, { terms })] },
  ])
  const replies = await storeOf(direct.client).decideEach(peeks, {})
  const charges = replies.map(
    (reply) => LIMIT - ('states' in reply ? reply.states[0]![0]!.remaining : 0),
  )
  expect(charges.filter((count) => count > 1)).toEqual([])
  const failed = made.filter(({ isCharged }) => !isCharged).length
  await context.annotate(JSON.stringify({ decisions: made.length, failed }))
})
