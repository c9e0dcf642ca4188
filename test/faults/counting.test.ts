import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import type { AlgorithmName, PolicyOptions } from '../../src/core/config/options.ts'
import { algorithms } from '../../src/core/connection/algorithms/index.ts'
import type { FaultText } from '../support/fault-proxy/index.ts'
import { decided, type FaultStack, many, startFaultStack } from '../support/fault-stack.ts'
import { isLong } from '../support/long.ts'
import { testNoLeaks } from '../support/no-leaks.ts'

const names = Object.keys(algorithms) as AlgorithmName[]
const LIMIT = 20
/** With a window of a day, no unit comes back while a test runs. */
const policy = (name: string, algorithm: AlgorithmName): PolicyOptions => ({
  name,
  algorithm,
  limit: LIMIT,
  window: '1d',
  onStoreError: 'deny',
  key: 'header:x-api-key',
  match: { path: `/${name}` },
})
const policies = [
  ...names.map((name) => policy(name, name)),
  { ...policy('lost', 'fixed-window'), deadline: '250ms' } as const,
]

let stack: FaultStack
beforeAll(async () => {
  stack = await startFaultStack()
  await stack.renew({ policies, deadline: '5s' })
})
afterEach(() => stack.faults.set(null))
afterAll(() => stack.stop())

let keys = 0
const newKey = () => ({ 'x-api-key': `ak_live_51Hq8ZxPlanted-${++keys}` })

/** Sends concurrent requests. Returns how many of them are admitted. */
async function admitted(path: string, headers: Record<string, string>, count: number) {
  const answers = await many(count, () => stack.get(path, headers))
  return answers.filter(({ status }) => status === 200).length
}

describe.each(names)('%s', (algorithm) => {
  const path = `/${algorithm}`

  test('A call that the network delivers twice is charged twice, and no more than the limit is admitted.', async () => {
    await stack.faults.set('duplicate')
    const client = newKey()
    let oneByOne = 0
    for (let i = 0; i < LIMIT; i++) oneByOne += await admitted(path, client, 1)
    const atOnce = await admitted(path, newKey(), 3 * LIMIT)
    await stack.faults.set(null)
    expect(oneByOne).toBe(LIMIT / 2)
    expect(atOnce).toBeLessThanOrEqual(LIMIT)
  })

  test.each(isLong ? [-1000, -600_000, -7 * 86_400_000] : [-600_000])(
    'No more than the limit is admitted when the clock jumps by %d ms, and when it jumps back.',
    async (jump) => {
      const client = newKey()
      const before = await admitted(path, client, LIMIT - 5)
      await stack.faults.set(`clock=${jump}`)
      const during = await admitted(path, client, LIMIT)
      await stack.faults.set(null)
      const after = await admitted(path, client, LIMIT)
      expect(before).toBe(LIMIT - 5)
      expect(during).toBeGreaterThan(0)
      expect(before + during + after).toBeLessThanOrEqual(LIMIT)
    },
  )
})

describe.each([['batch', true], ...(isLong ? ([['single call', false]] as const) : [])] as const)(
  'a %s whose reply is lost',
  (kind, batching) => {
    const lost: FaultText[] = ['lose', 'reset-after']
    const others: FaultText[] = ['late=4000', 'stall-body', 'reset-body', 'truncated']

    test.each(isLong ? [...lost, ...others] : lost)(
      `A ${kind} whose reply is lost (%s) is not repeated, so it is charged once.`,
      async (fault) => {
        // The circuit is still closed after three failures.
        if (isLong) await stack.renew({ policies, deadline: '5s', batching })
        await decided(stack, '/lost', newKey())
        const client = newKey()
        const remaining = () =>
          vi.waitFor(
            async () => {
              const { headers } = await stack.get('/lost', client)
              return Number(/;r=(\d+)/.exec(headers.get('ratelimit')!)![1])
            },
            { timeout: 20_000, interval: 1 },
          )
        const first = await remaining()
        const delivered = () => {
          const { eval: texts = 0, evalsha = 0 } = stack.faults.counts().delivered
          return texts + evalsha
        }
        const before = { arrived: stack.faults.counts().arrived, delivered: delivered() }
        await stack.faults.set(fault)
        expect(await admitted('/lost', client, 3)).toBe(0)
        const { arrived } = stack.faults.counts()
        const deliveredDuring = delivered()
        await stack.faults.set(null)
        // The first batch of an isolate carries the text of the script for many keys.
        const texts = (arrived.eval ?? 0) - (before.arrived.eval ?? 0)
        const calls = texts + (arrived.evalsha ?? 0) - (before.arrived.evalsha ?? 0)
        if (batching) expect([1, 2, 3]).toContain(calls)
        else expect([texts, calls]).toEqual([0, 3])
        expect(deliveredDuring - before.delivered).toBe(calls)
        // One unit for each of the three requests, and one for each later request of `remaining`.
        const last = await remaining()
        expect(first - last).toBe(3 + delivered() - deliveredDuring)
      },
    )
  },
)

testNoLeaks(() => stack)
