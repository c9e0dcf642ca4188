import { expect, test, vi } from 'vitest'
import type { OutboundPolicy } from '../../../src/outbound/index.ts'
import { isLong } from '../../support/long.ts'
import { otherSide, useOutbound } from '../../support/outbound.ts'

const stack = useOutbound()
const URL = 'https://api.example.com/'
const many = isLong ? 1_000 : 100

const policy = (onStoreError: OutboundPolicy['onStoreError']): OutboundPolicy => ({
  name: 'calls',
  algorithm: 'gcra',
  limit: 10,
  window: '1s',
  onStoreError,
})

test(`When Redis ends, ${many} waiting calls go by the fallback, and one that waits with 'deny' fails with the error of the store.`, async () => {
  vi.spyOn(console, 'error').mockImplementation(() => {}) // the log
  const side = otherSide()
  const wide = { ...policy('local'), algorithm: 'token-bucket', limit: 100_000 } as const
  const slots = { name: 'open', algorithm: 'concurrency', limit: 1, window: '1m' } as const
  const [slotted] = stack.processes(1, side, { policies: [wide, slots], deadline: '20s' })
  const [local] = stack.processes(1, side, { policies: [policy('local')] })
  const [deny] = stack.processes(1, side, { policies: [{ ...policy('deny'), limit: 1 }] })
  const [allow] = stack.processes(1, side, { policies: [policy('allow')] })

  const open = await slotted!(URL)
  const waiting = Array.from({ length: many }, () => slotted!(URL))
  await expect.poll(async () => (await slotted!.status()).slotsAhead).toBe(many + 1)
  expect((await slotted!.status()).waiting).toBe(many)
  await Promise.all([deny!(URL), allow!(URL)])
  const waitingToo = deny!(URL).catch((error) => error)
  await expect.poll(async () => (await deny!.status()).nextTurnMs).toBeGreaterThan(1_000)

  await stack.kill()
  const responses = await Promise.all([...waiting, allow!(URL)])
  expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]))
  const failure = { code: 'store-error', retryAfterMs: null, cause: { name: 'StoreError' } }
  expect(await waitingToo).toMatchObject(failure)
  await expect(deny!(URL)).rejects.toMatchObject(failure)
  const begun = Date.now()
  await Promise.all([local!(URL), local!(URL), local!(URL)])
  expect(Date.now() - begun).toBeGreaterThanOrEqual(200) // one call each 100 ms, in this process alone
  await open.text()
})

test('After Redis has ended, a 429 still delays the calls of its process.', async () => {
  vi.spyOn(console, 'error').mockImplementation(() => {}) // the log
  const side = otherSide()
  const [call] = stack.processes(1, side, { policies: [policy('local')], wait: '20s' })
  side.answers.push(new Response('', { status: 429, headers: { 'Retry-After-Ms': '500' } }))
  expect((await call!(URL)).status).toBe(200)
  expect(side.received[1]!.at - side.received[0]!.at).toBeGreaterThanOrEqual(500)
  side.answers.push(new Response('', { status: 429, headers: { 'Retry-After': '60' } }))
  expect((await call!(URL)).status).toBe(429)
  await expect(call!(URL)).rejects.toMatchObject({ code: 'wait' })
})

test('Without Redis each of 1,100 accounts has a count that stays.', async () => {
  vi.spyOn(console, 'error').mockImplementation(() => {}) // the log
  const side = otherSide()
  const hourly = { ...policy('local'), algorithm: 'token-bucket', limit: 1, window: '1h' } as const
  const [call] = stack.processes(1, side, {
    policies: [{ ...hourly, key: 'header:x-account' }],
    wait: '1ms',
  })
  for (const _ of [1, 2]) {
    for (let first = 0; first < 1_100; first += 100) {
      const calls = Array.from({ length: 100 }, (_, index) =>
        call!(URL, { headers: { 'X-Account': `${first + index}` } }),
      )
      await Promise.allSettled(calls)
    }
  }
  expect(side.received).toHaveLength(1_100)
})
