import type { FaultText } from 'sluice-fault-proxy'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { AlgorithmName, PolicyOptions } from '../../src/config/options.ts'
import { algorithms } from '../../src/store/local/algorithms/index.ts'
import { type FaultStack, startFaultStack } from '../support/fault-stack.ts'
import { testNoLeaks } from '../support/no-leaks.ts'

const names = Object.keys(algorithms) as AlgorithmName[]
const LIMIT = 20
/** Exact limits: in a day nothing of note grows back while a test runs. */
const policies = names.map(
  (algorithm): PolicyOptions => ({
    name: algorithm,
    algorithm,
    limit: LIMIT,
    window: '1d',
    onStoreError: 'deny',
    key: 'header:x-api-key',
    match: { path: `/${algorithm}` },
  }),
)

let stack: FaultStack
beforeAll(async () => {
  stack = await startFaultStack()
  await stack.renew({ policies, deadline: '5s' })
})
afterAll(() => stack.stop())

let keys = 0
const newKey = () => ({ 'x-api-key': `ak_live_51Hq8ZxPlanted-${++keys}` })

/** How many of so many requests at once pass. */
async function admitted(path: string, headers: Record<string, string>, count: number) {
  const answers = await Promise.all(Array.from({ length: count }, () => stack.get(path, headers)))
  return answers.filter(({ status }) => status === 200).length
}

describe.each(names)('%s', (algorithm) => {
  const path = `/${algorithm}`

  test('counts a request that a network delivers twice twice, and admits no more for it', async () => {
    await stack.faults.set('duplicate')
    const client = newKey()
    let oneByOne = 0
    for (let i = 0; i < LIMIT; i++) oneByOne += await admitted(path, client, 1)
    const atOnce = await admitted(path, newKey(), 3 * LIMIT)
    await stack.faults.set(null)
    expect(oneByOne).toBe(LIMIT / 2)
    expect(atOnce).toBeLessThanOrEqual(LIMIT)
  })

  test.each([-1000, -600_000, -7 * 86_400_000])(
    'admits nothing more when the clock jumps by %d ms, nor when it comes back',
    async (jump) => {
      const client = newKey()
      const before = await admitted(path, client, LIMIT - 5)
      await stack.faults.set(`clock=${jump}`)
      const during = await admitted(path, client, LIMIT)
      await stack.faults.set(null)
      const after = await admitted(path, client, LIMIT)
      expect(before).toBe(LIMIT - 5)
      expect(before + during + after).toBeLessThanOrEqual(LIMIT)
    },
  )
})

describe.each([
  ['', false],
  [', shared with others,', true],
])('a call%s whose answer was lost', (_, batching) => {
  test.each<FaultText>([
    'late=400',
    'lose',
    'stall-body',
    'reset-after',
    'reset-body',
    'truncated',
  ])('(%s) is not made again: it counted once', async (fault) => {
    // Three failures leave the circuit closed.
    await stack.renew({ policies, deadline: '250ms', batching })
    const client = newKey()
    const left = async () => {
      for (;;) {
        const { headers } = await stack.get('/fixed-window', client)
        const field = headers.get('ratelimit')
        if (field) return Number(/;r=(\d+)/.exec(field)![1])
      }
    }
    const first = await left()
    const delivered = () => stack.faults.counts().delivered.evalsha ?? 0
    const before = { arrived: stack.faults.counts().arrived, delivered: delivered() }
    await stack.faults.set(fault)
    expect(await admitted('/fixed-window', client, 3)).toBe(0)
    const { arrived } = stack.faults.counts()
    const lost = delivered()
    await stack.faults.set(null)
    const calls = arrived.evalsha! - (before.arrived.evalsha ?? 0)
    if (batching) expect([1, 2, 3]).toContain(calls)
    else expect(calls).toBe(3)
    expect(arrived.eval).toBe(before.arrived.eval)
    expect(lost - before.delivered).toBe(calls)
    // One each for the three, and one for each peek.
    const last = await left()
    expect(first - last).toBe(3 + delivered() - lost)
  })
})

testNoLeaks(() => stack)
