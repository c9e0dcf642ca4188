/** Clients that begin a body and withhold its end, sent to workerd itself: Miniflare's entry Worker would buffer their bodies. */
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type Stack, startStack } from '../../tools/stack.ts'
import { residentBytes } from '../support/resident-bytes.ts'

const json = { 'content-type': 'application/json' }
const MIB = 1024 * 1024
const TIMEOUT_MS = 5_000

let stack: Stack
beforeAll(async () => {
  const quota = { window: '1h', algorithm: 'fixed-window' } as const
  stack = await startStack({
    config: {
      policies: [
        { ...quota, name: 'few', limit: 1, match: { path: '/few' } },
        {
          ...quota,
          name: 'tools',
          limit: 10_000,
          match: { path: ['/few', '/tools'] },
          key: ['ip', 'body:a'],
          onMissingKey: 'refuse',
        },
      ],
    },
    bodies: { max: '1mb', timeout: `${TIMEOUT_MS}ms` },
  })
})
afterAll(() => stack?.stop())

const sockets: Socket[] = []
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy()
})

/** Sends the head of a request and this much of a body of 1 MiB. */
function withhold(path: string, ip: string, sent: number): Socket {
  const { hostname, port } = new URL(stack.worker.directUrl)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => {})
  sockets.push(socket)
  const head = [
    `POST ${path} HTTP/1.1`,
    'Host: localhost',
    `CF-Connecting-IP: ${ip}`,
    'Content-Type: application/json',
    `Content-Length: ${MIB}`,
    'Connection: close',
    '',
    '',
  ]
  socket.write(head.join('\r\n'))
  socket.write(`${'{"a":"'.padEnd(sent - 1, 'x')}"`)
  return socket
}

/** The first line of the answer, and the time until it arrived. */
async function answered(socket: Socket): Promise<{ line: string; ms: number }> {
  const startedAt = performance.now()
  const line = await new Promise<string>((resolve) =>
    socket.once('data', (data) => resolve(String(data).split('\r\n', 1)[0]!)),
  )
  return { line, ms: performance.now() - startedAt }
}

test('A client that is already refused gets its 429 although it withholds its body.', async () => {
  const ip = '203.0.113.7'
  const post = () => stack.fetch('/few', { method: 'POST', body: '{"a":"b"}', ip, headers: json })
  expect([(await post()).status, (await post()).status]).toEqual([200, 429])
  const calls = stack.httpRequests()
  const all = []
  for (let n = 0; n < 5; n++) all.push(await answered(withhold('/few', ip, 100)))
  expect(new Set(all.map(({ line }) => line))).toEqual(new Set(['HTTP/1.1 429 Too Many Requests']))
  expect(stack.httpRequests()).toBe(calls)
  expect(Math.min(...all.map(({ ms }) => ms))).toBeLessThan(50)
})

test.skipIf(process.platform !== 'linux')(
  'While 150 clients withhold the end of bodies of 1 MiB, workerd grows by less than 128 MiB. It reads some of the bodies, and the others are unreadable.',
  async () => {
    const before = await residentBytes()
    const withheld = Array.from({ length: 150 }, (_, n) =>
      withhold('/tools', `198.51.100.${n}`, MIB - 1),
    )
    const answers = withheld.map((socket) => text(socket).catch(() => ''))
    let highest = before
    for (const end = Date.now() + TIMEOUT_MS / 2; Date.now() < end; ) {
      await sleep(100)
      highest = Math.max(highest, await residentBytes())
    }
    expect(highest - before).toBeLessThan(128 * MIB)
    for (const socket of withheld) socket.write('}')
    const passed = (await Promise.all(answers)).filter((one) => one.startsWith('HTTP/1.1 200 '))
    expect(passed.length).toBeGreaterThan(0)
    expect(passed.length).toBeLessThan(150)
  },
  30_000,
)

test('The bodies of clients that have disconnected leave room for others.', async () => {
  const withheld = Array.from({ length: 20 }, (_, n) =>
    withhold('/tools', `198.51.100.${n}`, MIB - 1),
  )
  await sleep(500)
  for (const socket of withheld) socket.destroy()
  await expect
    .poll(
      async () => {
        const body = JSON.stringify({ a: 'b', pad: 'x'.repeat(900_000) })
        return (await stack.fetch('/tools', { method: 'POST', body, headers: json })).status
      },
      { timeout: 2 * TIMEOUT_MS },
    )
    .toBe(200)
}, 30_000)
