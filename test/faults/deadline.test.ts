import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type StallMeter, watchStall } from 'sluice-bench'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import type { RunningWorker } from '../../tools/worker.ts'
import { startFaults } from '../support/fault-proxy/index.ts'
import { type Answer, decision, type FaultStack, startFaultStack } from '../support/fault-stack.ts'
import { testNoLeaks } from '../support/no-leaks.ts'

const policy = { limit: 1000, window: '1d', onStoreError: 'deny' } as const
const API_TOKEN = 'a-api-token-for-tests'
let stack: FaultStack
let worker: RunningWorker
beforeAll(async () => {
  stack = await startFaultStack()
  worker = await stack.renew({
    deadline: '150ms',
    policies: [
      { ...policy, name: 'usual', match: { path: '/usual' } },
      { ...policy, name: 'patient', deadline: '700ms', match: { path: ['/patient', '/both'] } },
      { ...policy, name: 'hasty', deadline: '400ms', match: { path: '/both' } },
      // The test sends requests until the refunds.
      { ...policy, name: 'late', limit: 100_000, deadline: '1s', match: { path: '/late' } },
      { ...policy, name: 'lost', deadline: '5s', match: { path: '/lost' } },
    ],
  })
})
afterAll(() => stack.stop())

/** The time between two times of `performance.now()` without stalls of the machine. A timer that fires late waits as long again. */
const withoutStalls = async (stall: StallMeter, start: number, end: number) =>
  end - start - 2 * (await stall.between(start, end))

/** Sends a request. `usualMs` leaves out stalls. */
async function timed(stall: StallMeter, path: string): Promise<Answer & { usualMs: number }> {
  const start = performance.now()
  const answer = await stack.get(path)
  return { ...answer, usualMs: await withoutStalls(stall, start, performance.now()) }
}
const remaining = ({ headers }: Answer) =>
  Number(/;r=(\d+)/.exec(headers.get('ratelimit') ?? '')![1])

test('A policy may set its deadline, and the shortest deadline of a request’s policies holds, also on a new isolate.', async () => {
  const stall = watchStall(`${worker.url}/free`)
  onTestFinished(() => stall.stop())
  await stack.get('/free') // leaves the start of the Worker out of the times
  await stack.faults.set('hang')
  for (const [path, deadline] of [
    ['/usual', 150],
    ['/patient', 700],
    ['/both', 400],
  ] as const) {
    const { status, ms, usualMs } = await timed(stall, path)
    expect(status).toBe(503)
    expect(usualMs).toBeLessThan(deadline + 40) // the time includes the client, but not the origin
    expect(ms).toBeGreaterThan(deadline - 20)
  }
  await stack.faults.set(null)
})

test('A late reply answers only its own request, and refunds it if the fallback has refused it.', async () => {
  await decision(stack, '/late')
  const first = remaining(await stack.get('/late'))
  await stack.faults.set('late=1500')
  const refused = await Promise.all([stack.get('/late'), stack.get('/late'), stack.get('/late')])
  expect(refused.map(({ status }) => status)).toEqual([503, 503, 503])
  await stack.faults.set(null)
  // These requests are in flight while the late replies arrive.
  const counts: number[] = []
  const refunds: number[] = []
  const until = performance.now() + 8000
  while (performance.now() < until && refunds.at(-1) !== 3) {
    counts.push(remaining(await stack.get('/late')))
    refunds.push(counts.at(-1)! - (first - 3 - counts.length))
  }
  // Each of the three was charged once and then refunded. Every other request got its own answer.
  expect([refunds[0], refunds.at(-1)]).toEqual([0, 3])
  expect(refunds).toEqual(refunds.toSorted((a, b) => a - b))
  expect(worker.logs.every((line) => JSON.parse(line).event === 'store-error')).toBe(true)
})

test('If Redis loses the script, it is sent again once, within the same deadline.', async () => {
  await decision(stack, '/lost')
  const first = remaining(await stack.get('/lost'))
  const before = stack.faults.counts().arrived
  await stack.faults.set('noscript', { next: 1 })
  const answer = await stack.get('/lost')
  expect([answer.status, remaining(answer)]).toEqual([200, first - 1])
  const after = stack.faults.counts().arrived
  expect([after.evalsha! - (before.evalsha ?? 0), after.eval! - before.eval!]).toEqual([1, 1])
  expect(await stack.logged('script-reloaded')).toHaveLength(1)

  // The deadline also ends the second call, if the first one takes most of the time.
  const slow = await startFaults({ target: stack.bridge.url })
  const lost = await startFaults({ target: slow.url })
  try {
    const worker = await stack.renew(
      { deadline: '1s', policies: [{ ...policy, name: 'lost' }] },
      lost.url,
    )
    const stall = watchStall(`${worker.url}/_sluice/health`)
    onTestFinished(() => stall.stop())
    await decision(stack, '/x')
    const { evalsha = 0, eval: whole = 0 } = lost.counts().arrived
    await slow.set('late=450')
    await lost.set('noscript')
    const { status, usualMs } = await timed(stall, '/x') // 450 to flush, 450 to miss, 450 to flush, …
    expect(status).toBe(503)
    expect(usualMs).toBeLessThan(1000 + 40)
    await expect
      .poll(() => lost.counts().arrived)
      .toMatchObject({ evalsha: evalsha + 1, eval: whole + 1 })
  } finally {
    await lost.close()
    await slow.close()
  }
})

test('One deadline holds for a whole decision: the keys of the issuer and the store.', async () => {
  const silent = createServer(() => {})
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
  const { port } = silent.address() as AddressInfo
  try {
    const worker = await stack.renew(
      {
        deadline: '400ms',
        jwt: { jwks: `http://127.0.0.1:${port}/` },
        policies: [
          { ...policy, name: 'by-token', key: 'jwt:sub', match: { path: '/token' } },
          { ...policy, name: 'by-key', key: 'header:x-key', match: { path: '/key' } },
        ],
      },
      stack.faults.url,
      { SLUICE_API_TOKEN: API_TOKEN },
    )
    const stall = watchStall(`${worker.url}/free`)
    onTestFinished(() => stall.stop())
    await stack.get('/free')
    await stack.faults.set('hang')
    const token = `${btoa('{"alg":"RS256"}')}.e30.AA`.replaceAll('=', '')
    const start = performance.now()
    const { status } = await stack.get('/token', { Authorization: `Bearer ${token}` })
    const between = performance.now()
    const decided = await fetch(`${worker.url}/_sluice/v1/decide`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${API_TOKEN}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ policy: 'by-key', key: 'a' }),
    })
    await decided.body?.cancel()
    const end = performance.now()
    expect([status, decided.status]).toEqual([503, 429])
    expect(await withoutStalls(stall, start, between)).toBeLessThan(400 + 60)
    expect(await withoutStalls(stall, between, end)).toBeLessThan(400 + 60)
  } finally {
    await stack.faults.set(null)
    silent.closeAllConnections()
    silent.close()
  }
})

testNoLeaks(() => stack)
