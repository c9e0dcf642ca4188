import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Stack } from '../../tools/stack.ts'
import { startStack } from '../support/stack.ts'

/** A store that accepts connections and never responds. Outside of Workers a signal ends such a call; in a Worker only the runtime does. */
const sockets = new Set<Socket>()
const store = createServer((socket) => {
  sockets.add(socket)
  socket.on('error', () => {}).on('close', () => sockets.delete(socket))
  socket.resume()
})
let stack: Stack

beforeAll(async () => {
  await once(store.listen(0, '127.0.0.1'), 'listening')
  const { port } = store.address() as AddressInfo
  stack = await startStack({
    config: {
      deadline: '200ms',
      policies: [{ name: 'per-ip', limit: 1000, window: '1h', onStoreError: 'allow' }],
    },
    env: { UPSTASH_REDIS_REST_URL: `http://127.0.0.1:${port}` },
  })
})
afterAll(async () => {
  for (const socket of sockets) socket.destroy()
  store.close()
  await stack.stop()
})

const open = () => expect.poll(() => sockets.size, { timeout: 20_000, interval: 100 })

test('The runtime closes the call to a store that hangs, alone or in a batch, after its request has ended.', async () => {
  const statuses = (count: number) =>
    Promise.all(Array.from({ length: count }, async () => (await stack.fetch('/')).status))
  expect(await statuses(1)).toEqual([200])
  expect(sockets.size).toBe(1)
  expect(await statuses(20)).toEqual(new Array(20).fill(200))
  expect(sockets.size).toBeGreaterThan(1)
  await open().toBe(0)
})
