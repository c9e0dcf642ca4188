import { expect, test, vi } from 'vitest'
import type { OutboundPolicy } from '../../../../src/features/outbound/index.ts'
import { isLong } from '../../../support/long.ts'
import { otherSide, useOutbound } from '../../../support/outbound.ts'

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

test(`When Redis ends, ${many} waiting calls go by the fallback, and a call that has a place keeps it.`, async () => {
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
  const placed = deny!(URL)
  await expect.poll(async () => (await deny!.status()).nextTurnMs).toBeGreaterThan(1_000)

  await stack.kill()
  const responses = await Promise.all([...waiting, placed, allow!(URL)])
  expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]))
  await expect(deny!(URL)).rejects.toMatchObject({ code: 'store-error', retryAfterMs: null })
  const begun = Date.now()
  await Promise.all([local!(URL), local!(URL), local!(URL)])
  expect(Date.now() - begun).toBeGreaterThanOrEqual(200) // one call each 100 ms, in this process alone
  await open.text()
})
