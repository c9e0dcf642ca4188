import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createGateway } from '../../../src/hosts/worker/gateway.ts'

/** An origin that answers with the `X-Forwarded-For` of a request. */
const origin = createServer((request, response) => {
  response.end(request.headers['x-forwarded-for'] ?? 'none')
})
beforeAll(() => new Promise<void>((resolve) => void origin.listen(0, '127.0.0.1', resolve)))
afterAll(() => void origin.close())

test.each([
  'ip', // a policy counts by it
  'global',
] as const)('The gateway reads the client address once with the key %s.', async (key) => {
  let reads = 0
  const gateway = createGateway({
    unconfigured: 'local',
    origin: `http://127.0.0.1:${(origin.address() as AddressInfo).port}`,
    clientAddress: () => {
      reads += 1
      return '192.0.2.1'
    },
    policies: [{ name: `by-${key}`, limit: 1, window: '1h', key, onStoreError: 'allow' }],
  })
  const answer = await gateway.request('https://www.example.com/', {}, {})
  expect([await answer.text(), reads]).toEqual(['192.0.2.1', 1])
})
