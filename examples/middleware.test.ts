import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { startStack } from '../test/support/stack.ts'
import { bundled } from '../tools/build.ts'
import type { Stack } from '../tools/stack.ts'

let stack: Stack
beforeAll(async () => {
  stack = await startStack({ worker: await bundled('examples/middleware.ts') })
  // The first request to a new Worker may take longer than its deadline.
  const warmUp = async () => expect((await stack.fetch('/')).headers.has('ratelimit')).toBe(true)
  await vi.waitFor(warmUp, { timeout: 10_000 })
})
afterAll(() => stack.stop())

let clients = 0
const newAddress = () => `192.0.2.${++clients}`

test('Five logins a minute are allowed, and the sixth gets a 429 with Retry-After.', async () => {
  const ip = newAddress()
  for (let attempt = 1; attempt <= 5; attempt++) {
    expect((await stack.fetch('/login', { method: 'POST', ip })).status).toBe(200)
  }
  const response = await stack.fetch('/login', { method: 'POST', ip })
  expect(response.status).toBe(429)
  expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0)
})

test('The app can read the decision.', async () => {
  const response = await stack.fetch('/', { ip: newAddress() })
  expect(await response.json()).toEqual({ remaining: 99 })
  expect(response.headers.get('ratelimit')).toMatch(/^"per-ip";r=99;t=\d+$/)
})
