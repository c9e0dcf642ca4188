import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Bridge, type RunningRedis, startBridge, startRedis } from '../src/index.ts'

let redis: RunningRedis
let bridge: Bridge

beforeAll(async () => {
  redis = await startRedis()
  const targets = ['one', 'two'].map((token, index) => ({ url: `${redis.url}/${index}`, token }))
  bridge = await startBridge({ redis: targets, maxCommands: 200 })
})
afterAll(async () => {
  await bridge.close()
  await redis.stop()
})

async function send(token: string, path: string, body: unknown) {
  const headers = { Authorization: `Bearer ${token}` }
  const response = await fetch(bridge.url + path, {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
  })
  return response.json()
}
const msOf = async (work: () => Promise<unknown>) => {
  const start = performance.now()
  await work()
  return performance.now() - start
}
const many = <T>(count: number, what: () => Promise<T>) =>
  Promise.all(Array.from({ length: count }, what))

describe('a database that is throttled to 200 commands a second', () => {
  test('100 commands take half a second, and all succeed.', async () => {
    let answers: unknown[] = []
    const ms = await msOf(async () => {
      answers = await many(100, () => send('one', '/', ['ping']))
    })
    expect(answers).toEqual(Array(100).fill({ result: 'PONG' }))
    expect(ms).toBeGreaterThan(490)
    expect(ms).toBeLessThan(5000)
  })

  test.each([
    ['a pipeline', '/pipeline', Array(50).fill(['ping'])],
    ['a transaction', '/multi-exec', Array(50).fill(['ping'])],
    ['a script', '/', ['eval', `for _ = 1, 49 do redis.call('PING') end`, 0]],
  ])('The throttle counts each command of %s.', async (_, path, body) => {
    const ms = await msOf(() => send('one', path, body))
    expect(ms).toBeGreaterThan(240)
    expect(ms).toBeLessThan(5000)
  })

  test('Throttling one database does not delay another.', async () => {
    const commands = () => bridge.stats().one!.commands
    const before = commands()
    const one = msOf(() => send('one', '/pipeline', Array(400).fill(['ping'])))
    // From now on the pipeline waits: for 2 s.
    await vi.waitFor(() => expect(commands()).toBe(before + 400), { timeout: 30_000, interval: 5 })
    const two = await msOf(() => send('two', '/', ['ping']))
    expect(two).toBeLessThan((await one) / 2)
  })

  test('Idle time does not add capacity for later commands.', async () => {
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect(await msOf(() => many(40, () => send('one', '/', ['ping'])))).toBeGreaterThan(190)
  })
})
