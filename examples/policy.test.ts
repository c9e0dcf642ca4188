/** Shows how to test your own policies: runs the Worker with sluice.config.ts, as deployed, on a real Redis. */
import { afterAll, expect, test } from 'vitest'
import { startStack } from '../dev/stack.ts'

const sluice = await startStack()
afterAll(() => sluice.stop())

test('The sixth login of an address within a minute is refused; other addresses can still log in.', async () => {
  const login = (ip: string) => sluice.fetch('/login', { method: 'POST', ip })
  for (let attempt = 1; attempt <= 5; attempt++) expect((await login('192.0.2.1')).status).toBe(200)
  expect((await login('192.0.2.1')).status).toBe(429)
  expect((await login('192.0.2.2')).status).toBe(200)
})
