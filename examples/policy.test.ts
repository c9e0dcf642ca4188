/** Tests the policies of sluice.config.ts: runs the Worker as deployed, on a real Redis. */
import { afterAll, beforeEach, expect, test } from 'vitest'
import { startSluice } from '../src/testing/start.ts' // 'sluice/testing' in your own project

const sluice = await startSluice({ worker: { wranglerConfig: 'wrangler.toml' } })
beforeEach(() => sluice.flush())
afterAll(() => sluice.stop())

test('The sixth login of an address within a minute is refused; other addresses can still log in.', async () => {
  const login = (ip: string) => sluice.fetch('/login', { method: 'POST', ip })
  for (let attempt = 1; attempt <= 5; attempt++) expect((await login('192.0.2.1')).status).toBe(200)
  expect((await login('192.0.2.1')).status).toBe(429)
  expect((await login('192.0.2.2')).status).toBe(200)
})
