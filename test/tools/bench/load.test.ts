import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { closedLoop } from '../../../tools/bench/stack/load/closed.ts'
import { Connection } from '../../../tools/bench/stack/load/connection.ts'
import { openLoop } from '../../../tools/bench/stack/load/open.ts'

let server: Server
let port: number
const addresses: string[] = []

beforeAll(async () => {
  server = createServer((request, response) => {
    const address = String(request.headers['cf-connecting-ip'])
    addresses.push(address)
    if (address === 'dead') return void response.destroy()
    if (address === 'late') return
    if (address === 'chunks') response.write('{"retryAfterMs":')
    if (address === 'chunks') return void setTimeout(() => response.end('7}'), 5)
    response.writeHead(address.endsWith('.1') ? 429 : 200, { 'content-length': 2 }).end('ok')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  port = (server.address() as AddressInfo).port
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

const ask = (connection: Connection, address: string) =>
  new Promise<[number, string]>((resolve) =>
    connection.ask(address, (status, text) => resolve([status, text])),
  )

test('A connection returns status and body, with a length or in chunks, and reconnects after a break.', async () => {
  const connection = new Connection(port)
  expect((await ask(connection, '10.0.0.1'))[0]).toBe(429)
  expect((await ask(connection, 'chunks'))[1]).toContain('"retryAfterMs":')
  expect(await ask(connection, 'dead')).toEqual([0, ''])
  expect((await ask(connection, '10.0.0.2'))[0]).toBe(200)
  connection.hangUp()
})

test('A client that disconnected receives no response and can send another request.', async () => {
  const connection = new Connection(port)
  let called = false
  connection.ask('late', () => {
    called = true
  })
  connection.hangUp()
  expect((await ask(connection, '10.0.0.2'))[0]).toBe(200)
  expect(called).toBe(false)
  connection.hangUp()
})

test('A closed loop sends the requested number of requests, evenly spread over the clients.', async () => {
  addresses.length = 0
  const order = { ports: [port], network: 3, clients: 4, connections: 5, requests: 40 }
  const { count, statuses, latencies } = await closedLoop(order)
  expect([count, latencies.length, statuses]).toEqual([40, 40, { 200: 30, 429: 10 }])
  const times = ['10.3.0.0', '10.3.0.1', '10.3.0.2', '10.3.0.3'].map(
    (address) => addresses.filter((one) => one === address).length,
  )
  expect(times).toEqual([10, 10, 10, 10])
})

test('An open loop sends all scheduled requests.', async () => {
  addresses.length = 0
  const { count, statuses } = await openLoop({
    ports: [port],
    network: 4,
    clients: 1,
    rate: 200,
    ms: 200,
  })
  expect(count).toBe(addresses.length)
  expect(statuses).toEqual({ 200: count })
})
