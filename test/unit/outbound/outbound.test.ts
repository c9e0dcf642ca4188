import { expect, onTestFinished, test, vi } from 'vitest'
import { bodies } from '../../../src/features/bodies/index.ts'
import { type OutboundOptions, outbound } from '../../../src/outbound/index.ts'
import { startFaults } from '../../support/fault-proxy/index.ts'
import { otherSide, useOutbound } from '../../support/outbound.ts'

const stack = useOutbound()
const URL = 'https://api.example.com/v1/things'

/** One call each 100 ms. */
const spaced = { name: 'spaced', algorithm: 'gcra', limit: 10, window: '1s' } as const
const generous = { name: 'generous', algorithm: 'token-bucket', limit: 1000, window: '1s' } as const

function one(options: OutboundOptions, side = otherSide()) {
  const [call] = stack.processes(1, side, options)
  return { call: call!, side }
}

test('Calls of several processes go out in turn, in the rate of the limit.', async () => {
  const side = otherSide()
  const calls = stack.processes(2, side, { policies: [spaced] })
  const begun = Date.now()
  const texts = await Promise.all(
    [0, 1, 2, 3].map(async (index) => (await calls[index % 2]!(URL)).text()),
  )
  expect(texts).toEqual(['ok', 'ok', 'ok', 'ok'])
  side.received.forEach(({ at }, index) => {
    expect(at - begun).toBeGreaterThanOrEqual(index * 100)
  })
})

test('A call whose turn is too late fails at once with the time of its turn.', async () => {
  const { call, side } = one({ policies: [{ ...spaced, limit: 1, window: '1m' }], wait: '30s' })
  await call(URL)
  const failure = await call(URL).catch((error) => error)
  expect(failure).toMatchObject({ name: 'OutboundError', code: 'wait' })
  expect(failure.retryAfterMs).toBeGreaterThan(30_000)
  expect(failure.retryAfterMs).toBeLessThanOrEqual(60_000)
  expect(side.received).toHaveLength(1)
  expect((await call.status()).nextTurnMs).toBeLessThanOrEqual(60_000) // it was charged nothing
})

test('A call with a cost above the limit never has a turn.', async () => {
  const { call } = one({ policies: [{ ...generous, limit: 5, cost: 6 }] })
  await expect(call(URL)).rejects.toMatchObject({ code: 'too-large', retryAfterMs: null })
})

test('A waiting call that is aborted fails as fetch does and gives its place back.', async () => {
  const hourly = { ...spaced, limit: 1, window: '1h' } as const
  const { call, side } = one({ policies: [hourly], wait: '5h' })
  await call(URL)
  const controller = new AbortController()
  const waiting = call(URL, { signal: controller.signal })
  waiting.catch(() => {})
  await expect.poll(async () => (await call.status()).nextTurnMs).toBeGreaterThan(3_600_000)
  controller.abort(new Error('no longer needed'))
  await expect(waiting).rejects.toThrow('no longer needed')
  await expect.poll(async () => (await call.status()).nextTurnMs).toBeLessThanOrEqual(3_600_000)
  expect(side.received).toHaveLength(1)
})

test('A call with a signal that has aborted takes no turn.', async () => {
  const { call } = one({ policies: [{ ...spaced, limit: 1 }] })
  await expect(call(URL, { signal: AbortSignal.abort(new Error('gone')) })).rejects.toThrow('gone')
  expect((await call.status()).nextTurnMs).toBe(0)
})

test('The request goes out unchanged, and the errors of fetch pass through.', async () => {
  const { call, side } = one({ policies: [generous] })
  await call(URL, { method: 'POST', body: 'a body', headers: { 'X-A': '1' } })
  expect(side.received[0]).toMatchObject({ url: URL, method: 'POST', body: 'a body' })
  side.answers.push(new TypeError('fetch failed'))
  await expect(call(URL)).rejects.toThrow('fetch failed')
  await expect(call('not a url')).rejects.toThrow(TypeError)
})

test('A call without a response keeps its charge, whatever responses count, and gives its slot back.', async () => {
  for (const countOnly of [200, '4xx'] as const) {
    const hourly = { ...spaced, limit: 1, window: '1h', countOnly } as const
    const slots = { name: 'slots', algorithm: 'concurrency', limit: 1, window: '1m' } as const
    const { call, side } = one({ policies: [hourly, slots] })
    side.answers.push(new TypeError('fetch failed'))
    await expect(call(URL)).rejects.toThrow('fetch failed')
    await expect.poll(async () => (await call.status()).slotsAhead).toBe(0)
    expect((await call.status()).nextTurnMs).toBeGreaterThan(3_500_000)
  }
})

test('A body that is a stream goes out once.', async () => {
  const { call, side } = one({ policies: [generous] })
  const refusal = new Response('slow down', { status: 429, headers: { 'Retry-After': '0' } })
  side.answers.push(refusal)
  const body = new Response('streamed').body
  const response = await call(URL, { method: 'POST', body, duplex: 'half' } as RequestInit)
  expect(response.status).toBe(429)
  expect(side.received.map((one) => one.body)).toEqual(['streamed'])
})

test('A Request that is older than the global class keeps its signal, and its stream goes out once.', async () => {
  const aborted = new Request(URL, { signal: AbortSignal.abort(new Error('gone')) })
  const streamed = new Request(URL, { method: 'POST', body: 'streamed' })
  vi.stubGlobal('Request', class extends Request {}) // as @hono/node-server does
  onTestFinished(() => void vi.unstubAllGlobals())
  const { call, side } = one({ policies: [{ ...spaced, limit: 1 }] })
  await expect(call(aborted)).rejects.toThrow('gone')
  expect((await call.status()).nextTurnMs).toBe(0) // it took no turn
  side.answers.push(new Response('slow down', { status: 429, headers: { 'Retry-After': '0' } }))
  expect((await call(streamed)).status).toBe(429)
  expect(side.received.map((one) => one.body)).toEqual(['streamed'])
})

test('A 429 delays the calls of all processes, and its call is sent again.', async () => {
  const side = otherSide()
  const [first, second] = stack.processes(2, side, { policies: [generous] })
  side.answers.push(new Response('', { status: 429, headers: { 'Retry-After-Ms': '300' } }))
  const begun = Date.now()
  const retried = first!(URL, { method: 'POST', body: 'again' })
  await expect.poll(async () => (await second!.status()).coolingMs).toBeGreaterThan(0)
  const other = second!(URL, { method: 'POST', body: 'other' })
  expect((await retried).status).toBe(200)
  await other
  expect(side.received.map(({ body }) => body).toSorted()).toEqual(['again', 'again', 'other'])
  for (const { at } of side.received.slice(1)) expect(at - begun).toBeGreaterThanOrEqual(300)
})

test('A 429 whose wait has passed or cannot be read is sent again after 1 s.', async () => {
  await Promise.all(
    ['0', '2, 3', '-1', 'Tue, 24 Nov 2020 12:00:00 GMT'].map(async (value) => {
      const { call, side } = one({ policies: [generous] })
      side.answers.push(new Response('', { status: 429, headers: { 'Retry-After': value } }))
      expect((await call(URL)).status).toBe(200)
      expect(side.received[1]!.at - side.received[0]!.at).toBeGreaterThanOrEqual(990)
    }),
  )
})

test('A reset in ms since the epoch stops the calls for as long as it says.', async () => {
  const { call, side } = one({ policies: [generous], wait: '1s' })
  const headers = { 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': `${Date.now() + 10_000}` }
  side.answers.push(new Response('', { status: 429, headers }))
  expect((await call(URL)).status).toBe(429)
  const { coolingMs } = await call.status()
  expect(coolingMs).toBeGreaterThan(1_000)
  expect(coolingMs).toBeLessThanOrEqual(10_000)
})

test('A store that is slow at first is waited for, so that the processes count together.', async () => {
  const env = stack.env()
  const faults = await startFaults({ target: env.UPSTASH_REDIS_REST_URL })
  onTestFinished(() => faults.close())
  await faults.set('delay=600')
  const call = outbound(otherSide().fetch, {
    env: { ...env, UPSTASH_REDIS_REST_URL: faults.url },
    namespace: 'slow',
    policies: [{ ...generous, onStoreError: 'deny' }],
  })
  expect((await call(URL)).status).toBe(200)
})

test('A 429 whose cooldown is longer than the wait is returned.', async () => {
  const { call, side } = one({ policies: [generous], wait: '1s' })
  side.answers.push(new Response('later', { status: 429, headers: { 'Retry-After': '60' } }))
  const response = await call(URL)
  expect([response.status, await response.text()]).toEqual([429, 'later'])
  await expect(call(URL)).rejects.toMatchObject({ code: 'wait' })
})

test('A lower limit that the other side reports is in force for all processes.', async () => {
  const side = otherSide()
  const [first, second] = stack.processes(2, side, { policies: [generous] })
  const headers = {
    RateLimit: '"default";r=3;t=1',
    'RateLimit-Policy': '"default";q=5;w=1',
  }
  side.answers.push(new Response('ok', { headers }))
  await first!(URL)
  // Three at once and one each 200 ms. A unit that has begun to flow back when the report arrives counts as whole.
  const slowest = async () => {
    const start = Date.now()
    await Promise.all([1, 2, 3, 4, 5].map(() => second!(URL)))
    return side.received.at(-1)!.at - start
  }
  await expect.poll(slowest, { timeout: 10_000 }).toBeGreaterThanOrEqual(190)
})

test('Slots bound the calls in flight, and the next call goes when a body has ended.', async () => {
  const slots = { name: 'open', algorithm: 'concurrency', limit: 1, window: '1m' } as const
  const side = otherSide()
  const [first, second] = stack.processes(2, side, { policies: [generous, slots] })
  const response = await first!(URL, { method: 'POST', body: '1' })
  const waiting = second!(URL, { method: 'POST', body: '2' })
  await expect.poll(async () => (await second!.status()).slotsAhead).toBe(2)
  expect(side.received).toHaveLength(1)
  expect(await response.text()).toBe('ok')
  expect(await (await waiting).text()).toBe('ok')
  await expect.poll(async () => (await first!.status()).slotsAhead).toBe(0)
})

test('A call that gets no slot within its wait fails and leaves the line.', async () => {
  const slots = { name: 'open', algorithm: 'concurrency', limit: 1, window: '1m' } as const
  const { call } = one({ policies: [generous, slots], wait: '200ms' })
  const open = await call(URL)
  await expect(call(URL)).rejects.toMatchObject({ code: 'slots', retryAfterMs: null })
  await expect.poll(async () => (await call.status()).slotsAhead).toBe(1)
  await open.text()
})

test('Tokens are charged by what a response has used.', async () => {
  const tokens = {
    name: 'tokens',
    algorithm: 'token-bucket',
    limit: 1000,
    window: '1h',
    cost: { usage: 'usage.total_tokens', otherwise: 100, max: 1000 },
  } as const
  const { call, side } = one({ policies: [tokens], use: [bodies()], wait: '1s' })
  side.answers.push(Response.json({ usage: { total_tokens: 900 } }))
  const response = await call(URL)
  expect(await response.json()).toEqual({ usage: { total_tokens: 900 } })
  await expect.poll(async () => (await call.status()).nextTurnMs).toBe(0)
  await expect
    .poll(async () => {
      const failure = await call(URL).then(
        () => undefined,
        (error) => error,
      )
      return failure?.code
    })
    .toBe('wait')
})

test('More calls than maxWaiting fail at once.', async () => {
  const minutely = { ...spaced, limit: 1, window: '1m' } as const
  const { call } = one({ policies: [minutely], maxWaiting: 2, wait: '5m' })
  await call(URL)
  const controller = new AbortController()
  const waiting = [1, 2].map(() => call(URL, { signal: controller.signal }).catch(() => 'aborted'))
  await expect(call(URL)).rejects.toMatchObject({ code: 'full' })
  expect((await call.status()).waiting).toBe(2)
  controller.abort()
  expect(await Promise.all(waiting)).toEqual(['aborted', 'aborted'])
  expect((await call.status()).waiting).toBe(0)
})

test('Policies for other requests take no turn.', async () => {
  const { call, side } = one({
    policies: [{ ...spaced, limit: 1, match: { path: '/v1/chat/*' } }],
    wait: '100ms',
  })
  await Promise.all([call(URL), call(URL), call(URL)])
  expect(side.received).toHaveLength(3)
})

test('Each key of a request header has a line of its own.', async () => {
  const { call } = one({
    policies: [{ ...spaced, limit: 1, window: '1h', key: 'header:x-account' }],
    wait: '100ms',
  })
  const as = (account: string) => call(URL, { headers: { 'X-Account': account } })
  await Promise.all([as('a'), as('b')])
  await expect(as('a')).rejects.toMatchObject({ code: 'wait' })
})

test('A call that waits for its place when another one gets a 429 waits for the end of the cooldown.', async () => {
  // The place is after 1.5 s.
  const { call, side } = one({ policies: [{ ...spaced, limit: 2, window: '3s' }] })
  let answer = (_: Response) => {}
  side.answers.push(() => new Promise((resolve) => (answer = resolve)))
  const first = call(URL, {
    method: 'POST',
    body: new Response('stream').body,
    duplex: 'half',
  } as RequestInit)
  await expect.poll(() => side.received.length).toBe(1)
  const second = call(URL)
  await expect.poll(async () => (await call.status()).waiting).toBe(1)
  const refusedAt = Date.now()
  answer(new Response('', { status: 429, headers: { 'Retry-After-Ms': '2000' } }))
  expect((await first).status).toBe(429)
  await second
  expect(side.received[1]!.at - refusedAt).toBeGreaterThanOrEqual(2_000)
})

test('A 429 for one account does not delay the calls of another one.', async () => {
  const { call, side } = one({
    policies: [{ ...spaced, limit: 100, key: 'header:x-account' }],
    wait: '1s',
  })
  const as = (account: string) => call(URL, { headers: { 'X-Account': account } })
  side.answers.push(new Response('', { status: 429, headers: { 'Retry-After': '60' } }))
  expect((await as('a')).status).toBe(429)
  await Promise.all([as('b'), as('b'), as('b'), as('b')])
  await expect(as('a')).rejects.toMatchObject({ code: 'wait' })
})

test('A 503 with Retry-After is returned, since the other side may have acted, and later calls wait.', async () => {
  const { call, side } = one({ policies: [generous] })
  side.answers.push(new Response('', { status: 503, headers: { 'Retry-After': '1' } }))
  expect((await call(URL, { method: 'POST', body: 'order' })).status).toBe(503)
  expect((await call.status()).coolingMs).toBeGreaterThan(0)
  expect(side.received).toHaveLength(1)
})

test('Calls of other processes that wait already are not sent before the end of a cooldown.', async () => {
  const side = otherSide()
  // Of a burst of six calls, the first one gets a 429 while the others wait for turns 200 ms apart.
  const calls = stack.processes(6, side, { policies: [{ ...spaced, limit: 5 }] })
  let answer = (_: Response) => {}
  side.answers.push(() => new Promise((resolve) => (answer = resolve)))
  const all = [calls[0]!(URL)]
  await expect.poll(() => side.received.length).toBe(1)
  all.push(...calls.slice(1).map((call) => call(URL)))
  const waiting = async () => Promise.all(calls.map((call) => call.status()))
  await expect.poll(async () => (await waiting()).filter((one) => one.waiting === 1).length).toBe(5)
  const refusedAt = Date.now()
  answer(new Response('', { status: 429, headers: { 'Retry-After-Ms': '2000' } }))
  // A call whose turn comes while the 429 is on its way is sent.
  await expect.poll(async () => (await calls[1]!.status()).coolingMs).toBeGreaterThan(0)
  const before = side.received.length
  expect((await Promise.all(all)).map(({ status }) => status)).toEqual(all.map(() => 200))
  const during = side.received.slice(before).filter(({ at }) => at < refusedAt + 2_000)
  expect(during.length).toBeLessThanOrEqual(1)
})

test('Of two cooldowns that are told at once, the longer one counts.', async () => {
  const side = otherSide()
  const [first, second] = stack.processes(2, side, { policies: [generous], wait: '100ms' })
  const refusal = (after: string) =>
    new Response('', { status: 429, headers: { 'Retry-After': after } })
  let answers: ((response: Response) => void)[] = []
  for (const _ of [1, 2])
    side.answers.push(() => new Promise((resolve) => (answers = [...answers, resolve])))
  const both = [first!(URL)]
  await expect.poll(() => answers.length).toBe(1)
  both.push(second!(URL))
  await expect.poll(() => answers.length).toBe(2)
  answers[0]!(refusal('60'))
  await both[0]
  answers[1]!(refusal('5'))
  await both[1]
  expect((await second!.status()).coolingMs).toBeGreaterThan(50_000)
})

test('An operator lists and lifts a cooldown, and all processes send again.', async () => {
  const side = otherSide()
  const [first, second, operator] = stack.processes(3, side, { policies: [generous], wait: '1s' })
  side.answers.push(new Response('', { status: 429, headers: { 'Retry-After': '3600' } }))
  expect((await first!(URL)).status).toBe(429)
  await expect(second!(URL)).rejects.toMatchObject({ code: 'wait' })
  const [cooldown] = await operator!.cooldowns.list()
  expect(cooldown!.coolingMs).toBeGreaterThan(3_500_000)
  expect(await operator!.cooldowns.lift()).toMatchObject([{ subject: cooldown!.subject }])
  expect(await operator!.cooldowns.list()).toEqual([])
  expect((await operator!(URL)).status).toBe(200)
  expect((await second!.status()).coolingMs).toBe(0)
})

test('A lift for one account leaves the cooldowns of the others.', async () => {
  const { call, side } = one({ policies: [{ ...generous, key: 'header:x-account' }], wait: '1s' })
  const as = (account: string) => ({ headers: { 'X-Account': account } })
  for (const account of ['a', 'b']) {
    side.answers.push(new Response('', { status: 429, headers: { 'Retry-After': '60' } }))
    expect((await call(URL, as(account))).status).toBe(429)
  }
  expect(await call.cooldowns.list()).toHaveLength(2)
  expect(await call.cooldowns.lift(URL, as('a'))).toHaveLength(1)
  expect((await call.status(URL, as('a'))).coolingMs).toBe(0)
  expect((await call(URL, as('a'))).status).toBe(200)
  await expect(call(URL, as('b'))).rejects.toMatchObject({ code: 'wait' })
})

test('A call that waits for the slot of one account delays no call of another one.', async () => {
  const slots = { name: 'open', algorithm: 'concurrency', limit: 1, window: '1m' } as const
  const { call, side } = one({ policies: [{ ...slots, key: 'header:x-account' }], wait: '5s' })
  const as = (account: string) => call(URL, { headers: { 'X-Account': account } })
  const [ofA, ofB] = [await as('a'), await as('b')]
  const waitingA = as('a')
  const waitingB = as('b')
  await expect.poll(async () => (await call.status()).waiting).toBe(2)
  await ofB.text()
  await (await waitingB).text() // the call of a still has its slot
  expect(side.received).toHaveLength(3)
  await ofA.text()
  await (await waitingA).text()
})

test('Units that calls do not use go to those that wait.', async () => {
  const tokens = {
    name: 'tokens',
    algorithm: 'token-bucket',
    limit: 100,
    window: '1s',
    cost: { usage: 'usage.total_tokens', otherwise: 50, max: 50 },
  } as const
  const { call, side } = one({ policies: [tokens], use: [bodies()], wait: '10s' })
  side.answers = Array.from({ length: 20 }, () => Response.json({ usage: { total_tokens: 5 } }))
  const begun = Date.now()
  // They reserve 1,000 tokens, which is 9 s more than the burst, and use 100.
  await Promise.all(Array.from({ length: 20 }, async () => (await call(URL)).text()))
  expect(Date.now() - begun).toBeLessThan(8_000)
})

test('What the other side has less is charged once, also if many responses tell it at once.', async () => {
  const hourly = { ...generous, limit: 100, window: '1h' } as const
  const tasks: Promise<unknown>[] = []
  const { call, side } = one({ policies: [hourly], waitUntil: (task) => void tasks.push(task) })
  const headers = { RateLimit: '"default";r=10;t=9', 'RateLimit-Policy': '"default";q=100;w=3600' }
  side.answers = Array.from({ length: 10 }, () => new Response('ok', { headers }))
  await Promise.all(Array.from({ length: 10 }, () => call(URL)))
  await Promise.all(tasks)
  // 10 units are left, of 90. One more may have begun to flow back.
  const codes = await Promise.all(Array.from({ length: 14 }, () => call(URL).catch((e) => e.code)))
  const late = codes.filter((code) => code === 'wait').length
  expect([3, 4]).toContain(late)
})
