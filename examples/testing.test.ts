/** Tests of a Hono app with two policies. docs/guides/test-policies.md shows this file, with the names of your own project. */
import { afterAll, beforeEach, expect, test } from 'vitest'
import { startSluice } from '../src/testing/start.ts' // 'sluice/testing' in your own project

const sluice = await startSluice({ worker: { main: 'examples/middleware.ts' } })
beforeEach(() => sluice.flush())
afterAll(() => sluice.stop())

const login = (ip: string) => sluice.fetch('/login', { method: 'POST', ip })

test('The sixth login of an address within a minute is refused; other addresses can still log in.', async () => {
  for (let attempt = 1; attempt <= 5; attempt++) expect((await login('192.0.2.1')).status).toBe(200)
  expect((await login('192.0.2.1')).status).toBe(429)
  expect((await login('192.0.2.2')).status).toBe(200)
})

test('After its wait a refused client can log in again.', async () => {
  for (let attempt = 1; attempt <= 5; attempt++) await login('192.0.2.1')
  const refusal = await login('192.0.2.1')
  await sluice.advance(`${Number(refusal.headers.get('retry-after'))}s`)
  expect((await login('192.0.2.1')).status).toBe(200)
})
