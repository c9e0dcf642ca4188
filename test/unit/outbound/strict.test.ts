/** A law: several processes and a strict other side, by a virtual time. */
import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import { OutboundError, outbound } from '../../../src/outbound/index.ts'
import { durableObjects } from '../../../src/stores/durable-objects/index.ts'
import { replaceTime, runBy, VirtualTime } from '../../../tools/differential/time.ts'
import { useInstantDigests } from '../../support/instant-digests.ts'
import { isLong } from '../../support/long.ts'
import { memoryObjects } from '../../support/memory-objects.ts'

replaceTime()
useInstantDigests()
const START = 1_789_000_000_000
const URL = 'https://api.example.com/'

interface Rate {
  algorithm: 'fixed-window' | 'sliding-log' | 'sliding-window' | 'token-bucket'
  limit: number
  window: number
  burst: number
}

const rate: fc.Arbitrary<Rate> = fc
  .record({
    algorithm: fc.constantFrom<Rate['algorithm'][]>(
      ...['fixed-window' as const, 'sliding-log' as const],
      ...['sliding-window' as const, 'token-bucket' as const],
    ),
    limit: fc.integer({ min: 1, max: 8 }),
    spacing: fc.integer({ min: 20, max: 200 }),
    burst: fc.integer({ min: 1, max: 8 }),
  })
  .map(({ spacing, burst, ...rest }) => ({
    ...rest,
    window: rest.limit * spacing,
    burst: Math.min(burst, rest.limit),
  }))

/** The most requests that the other side takes from one time to another one, both inclusive. */
function bound({ algorithm, limit, window, burst }: Rate, from: number, to: number): number {
  const ms = to - from
  if (algorithm === 'token-bucket') return Math.floor(burst + (ms * limit) / window)
  if (algorithm === 'sliding-log') return limit * (Math.floor(ms / window) + 1)
  // In clock windows, of a fixed and of a sliding window.
  return limit * (Math.floor(to / window) - Math.floor(from / window) + 1)
}

/** Makes the calls of several processes. The n-th request that is sent gets a 429 with a cooldown, if there is one. */
function play(
  { algorithm, limit, window, burst }: Rate,
  calls: { process: number; at: number }[],
  wait: number,
  cooldowns: Record<number, number> = {},
) {
  const time = new VirtualTime(START)
  return runBy(time, async () => {
    const { objects } = memoryObjects()
    const sent: { at: number }[] = []
    const cooled: { at: number; until: number }[] = []
    const processes = [0, 1, 2, 3].map(() =>
      outbound(
        async () => {
          const at = Date.now()
          sent.push({ at })
          const coolMs = cooldowns[sent.length]
          if (!coolMs) return new Response('ok')
          cooled.push({ at, until: at + coolMs })
          return new Response('', { status: 429, headers: { 'Retry-After-Ms': `${coolMs}` } })
        },
        {
          policies: [
            {
              ...{ name: 'calls', algorithm, limit, window },
              ...(algorithm === 'token-bucket' && { burst }),
              ...(algorithm === 'fixed-window' && { align: 'clock' as const }),
            },
          ],
          store: durableObjects(),
          env: { SLUICE_SUBJECT: objects, SLUICE_SECRET: 'a secret for tests' },
          wait,
        },
      ),
    )
    const ends = await Promise.all(
      calls.map(async ({ process, at }) => {
        await time.sleep(at)
        const begun = Date.now()
        const end = await processes[process]!(URL).then(
          ({ status }) => status,
          (error: unknown) => error,
        )
        return { end, tookMs: Date.now() - begun }
      }),
    )
    return { sent, cooled, ends }
  })
}

const processOf = fc.integer({ min: 0, max: 3 })

/** A cooldown ends just before the end of a wait, so the call that it has held back may wait no longer for its turn. */
const HELD_BACK: [Rate, { process: number; at: number }[], number, Record<number, number>] = [
  { algorithm: 'fixed-window', limit: 1, window: 20, burst: 1 },
  [1418, 1418, 0, 0].map((at) => ({ process: 0, at })),
  1262,
  { 1: 1, 4: 1261 },
]

test('No interval has more calls of four processes than the limit allows, none is sent in a cooldown, and every call ends.', async () => {
  vi.spyOn(console, 'error').mockImplementation(() => {}) // the log
  await fc.assert(
    fc.asyncProperty(
      rate,
      fc.array(fc.record({ process: processOf, at: fc.integer({ min: 0, max: 2_000 }) }), {
        minLength: 1,
        maxLength: 30,
      }),
      fc.integer({ min: 1, max: 4_000 }),
      fc.dictionary(fc.constantFrom('1', '4', '9'), fc.integer({ min: 1, max: 3_000 })),
      async (rate, calls, wait, cooldowns) => {
        const { sent, cooled, ends } = await play(rate, calls, wait, cooldowns)
        sent.forEach(({ at: from }, first) => {
          sent.slice(first).forEach(({ at: to }, index) => {
            expect(index + 1).toBeLessThanOrEqual(bound(rate, from, to))
          })
        })
        for (const { at, until } of cooled)
          expect(sent.filter((one) => one.at > at && one.at < until)).toEqual([])
        for (const { end, tookMs } of ends) {
          if (typeof end !== 'number') expect(end).toBeInstanceOf(OutboundError)
          expect(tookMs).toBeLessThanOrEqual(wait + 2)
        }
      },
    ),
    { numRuns: isLong ? 1_000 : 30, examples: [HELD_BACK] },
  )
})

test('Calls of four processes that all wait use at least 90 % of the limit.', async () => {
  await fc.assert(
    fc.asyncProperty(
      // Of a sliding window the units of the last window count too, so the algorithm itself admits fewer.
      rate.filter(({ algorithm }) => algorithm !== 'sliding-window'),
      fc.array(processOf, { minLength: 10, maxLength: 60 }),
      async (rate, order) => {
        const calls = order.map((process, index) => ({ process, at: index }))
        const { sent, ends } = await play(rate, calls, 600_000)
        expect(ends.map(({ end }) => end)).toEqual(order.map(() => 200))
        const lastMs = sent.at(-1)!.at - START
        const allowedMs = (order.length * rate.window) / rate.limit
        expect(lastMs).toBeLessThanOrEqual(allowedMs / 0.9 + 2 * rate.window)
      },
    ),
    { numRuns: isLong ? 500 : 15 },
  )
})
