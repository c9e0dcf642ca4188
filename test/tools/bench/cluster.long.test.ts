import { connect } from 'node:net'
import { createClient } from 'redis'
import { type RunningRedis, startBridge, startRedis } from 'sluice-upstash-bridge'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type Gate, startGate } from '../../../tools/bench/cluster/gate.ts'
import { startGrowingCluster } from '../../../tools/bench/cluster/grow.ts'
import { clusterText } from '../../../tools/bench/cluster/report.ts'

describe('a gate', () => {
  let redis: RunningRedis
  let gate: Gate
  beforeAll(async () => {
    redis = await startRedis({ own: true })
  })
  afterEach(() => gate?.close())
  afterAll(() => redis?.stop())

  async function open(perSecond: number) {
    gate = await startGate(perSecond)
    gate.open(Number(new URL(redis.url).port))
    const url = `redis://127.0.0.1:${gate.port}`
    return createClient({ url, RESP: 2, disableClientInfo: true })
      .on('error', () => {})
      .connect()
  }

  test('A gate passes commands at its rate, however many arrive together.', async () => {
    const client = await open(100)
    const before = gate.passed()
    const start = performance.now()
    await Promise.all(Array.from({ length: 51 }, () => client.ping()))
    expect(performance.now() - start).toBeGreaterThan(490)
    expect(gate.passed() - before).toBe(51)
    client.destroy()
  })

  test('A pause saves no commands for later.', async () => {
    const client = await open(100)
    await new Promise((resolve) => setTimeout(resolve, 300))
    const start = performance.now()
    await Promise.all(Array.from({ length: 21 }, () => client.ping()))
    expect(performance.now() - start).toBeGreaterThan(190)
    client.destroy()
  })

  test('Values with any bytes pass unchanged.', async () => {
    const client = await open(10_000)
    const value = `\r\n*1\r\n$4\r\nPING\r\n${'ü'.repeat(100_000)}`
    await client.set('k', value)
    expect(await client.get('k')).toBe(value)
    client.destroy()
  })

  test('A command that arrives byte by byte counts once.', async () => {
    gate = await startGate(10_000)
    gate.open(Number(new URL(redis.url).port))
    const socket = connect(gate.port, '127.0.0.1').setNoDelay(true)
    const reply = new Promise((resolve) => socket.once('data', (data) => resolve(String(data))))
    for (const byte of '*2\r\n$4\r\nECHO\r\n$2\r\nhi\r\n') {
      socket.write(byte)
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(await reply).toBe('$2\r\nhi\r\n')
    expect(gate.passed()).toBe(1)
    socket.destroy()
  })
})

test('A cluster grows from one master to two while commands run; no command fails or is lost.', async () => {
  const cluster = await startGrowingCluster(100_000)
  const bridge = await startBridge({ cluster: [cluster.url] })
  const counts = new Map<string, number>()
  const incr = async (key: string) => {
    const init = { method: 'POST', headers: { authorization: 'Bearer dev' } }
    const body = JSON.stringify(['incr', key])
    expect((await fetch(bridge.url, { ...init, body })).status).toBe(200)
    counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  try {
    for (let n = 0; n < 300; n++) await incr(`key:${n}`)
    let isGrown = false
    const growing = cluster.grow().finally(() => {
      isGrown = true
    })
    for (let n = 0; !isGrown; n++) await incr(`key:${n % 400}`)
    expect(await growing).toBe(8192)
    const before = cluster.gates.map((gate) => gate.passed())
    for (let n = 0; n < 400; n++) await incr(`key:${n}`)
    // Both masters serve about half of the keys.
    const shares = cluster.gates.map((gate, index) => gate.passed() - before[index]!)
    expect(Math.min(...shares)).toBeGreaterThan(150)
    const get = async (key: string) => {
      const headers = { authorization: 'Bearer dev' }
      const answer = await fetch(`${bridge.url}/get/${key}`, { headers })
      return Number(((await answer.json()) as { result: string }).result)
    }
    for (const [key, count] of counts) expect([key, await get(key)]).toEqual([key, count])
  } finally {
    await bridge.close()
    await cluster.stop()
  }
}, 120_000)

test('The report compares each number of masters with one and judges the targets.', () => {
  const step = (masters: number, perSecond: number) => ({
    masters,
    perSecond,
    failed: 0,
    commands: Array.from({ length: masters }, () => perSecond / masters),
    ...(masters > 1 && { moved: { slots: 100, seconds: 2, decisions: 50, failed: 1 } }),
  })
  const text = clusterText({ maxCommands: 100, steps: [step(1, 100), step(2, 191), step(3, 279)] })
  expect(text.split('\n').slice(2)).toEqual([
    '| 1 | 100 | 1.00 × | – | 100 | 0 | – | – |',
    '| 2 | 191 | 1.91 × | ≥ 1.9 × ✓ met | 95.5, 95.5 | 0 | 100 in 2.00 s | 1 of 50 |',
    '| 3 | 279 | 2.79 × | ≥ 2.8 × ✗ missed | 93.0, 93.0, 93.0 | 0 | 100 in 2.00 s | 1 of 50 |',
  ])
})
