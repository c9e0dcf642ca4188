import { expect, test } from 'vitest'
import { type OutboundOptions, outbound } from '../../../src/outbound/index.ts'
import { durableObjects } from '../../../src/stores/durable-objects/index.ts'
import { memoryObjects } from '../../support/memory-objects.ts'
import { otherSide } from '../../support/outbound.ts'

const URL = 'https://api.example.com/'
const spaced = { name: 'spaced', algorithm: 'gcra', limit: 10, window: '1s' } as const
const slots = { name: 'open', algorithm: 'concurrency', limit: 1, window: '1m' } as const

function isolates(count: number, policies: OutboundOptions['policies']) {
  const { objects } = memoryObjects()
  const side = otherSide()
  const calls = Array.from({ length: count }, () =>
    outbound(side.fetch, {
      policies,
      store: durableObjects(),
      env: { SLUICE_SUBJECT: objects, SLUICE_SECRET: 'a secret for tests' },
      wait: '5s',
    }),
  )
  return { side, calls }
}

test('Calls of several isolates take turns in a Durable Object.', async () => {
  const { side, calls } = isolates(2, [spaced])
  const begun = Date.now()
  await Promise.all([0, 1, 2, 3].map((index) => calls[index % 2]!(URL)))
  side.received.forEach(({ at }, index) => {
    expect(at - begun).toBeGreaterThanOrEqual(index * 100)
  })
})

test('Slots and cooldowns are those of the object.', async () => {
  const { side, calls } = isolates(2, [{ ...spaced, limit: 1000 }, slots])
  const open = await calls[0]!(URL)
  const waiting = calls[1]!(URL)
  await expect.poll(async () => (await calls[1]!.status()).slotsAhead).toBe(2)
  side.answers.push(new Response('', { status: 429, headers: { 'Retry-After-Ms': '200' } }))
  await open.text()
  expect((await waiting).status).toBe(200)
  expect(side.received).toHaveLength(3)
  expect(side.received[2]!.at - side.received[1]!.at).toBeGreaterThanOrEqual(200)
})
