import { createClient } from 'redis'
import { expect } from 'vitest'
import { enoughOf } from '../windows.ts'
import { callsOf, newRun, running, type Scenarios } from './client.ts'

/** Scenarios for live policies, namespaces, shadow, batching, the shield, clusters and leases. */
export const operation: Scenarios = {
  async live({ send }) {
    const redis = await createClient({ url: running.stack.redis.url }).connect()
    const document = { policies: [{ name: 'per-ip', limit: 20, window: '1m' }] }
    await redis.set('sluice:live', JSON.stringify(document))
    redis.destroy()
    const quota = async () => (await send('/')).field('ratelimit-policy')
    expect(await quota()).toBe('"per-ip";q=100;w=60')
    await expect.poll(quota).toBe('"per-ip";q=20;w=60')
  },

  async namespace({ send }) {
    const redis = await createClient({ url: running.stack.redis.url }).connect()
    expect(await redis.keys('sluice:1:shop:*')).toEqual([])
    expect((await send('/')).remaining).toBe(99)
    expect(await redis.keys('sluice:1:shop:*')).toEqual([
      expect.stringMatching(/^sluice:1:shop:\{[\w-]{16}\}$/),
    ])
    redis.destroy()
  },

  async 'shadow-mode'({ send }) {
    const shadowField = async () => {
      const { status, field, body } = await send('/', {
        headers: { 'Sluice-Shadow': '"invented"' },
      })
      expect([status, field('ratelimit-policy')]).toEqual([200, '"per-ip";q=100;w=60'])
      return body.headers!['sluice-shadow']
    }
    for (let sent = 0; sent < 3; sent += 1) expect(await shadowField()).toBeUndefined()
    expect(await shadowField()).toBe('"per-ip-strict"')
    const lines = () => running.stack.worker.logs.map((line) => JSON.parse(line))
    await expect
      .poll(lines)
      .toContainEqual(expect.objectContaining({ event: 'shadow-refused', code: 'per-ip-strict' }))
  },

  async batching() {
    expect(await callsOf(newRun('batching'))).toBe(50)
    expect(await callsOf(newRun('first'))).toBeLessThan(40)
  },

  async shield({ remaining, send }) {
    await enoughOf(10_000, 4_000) // a sliding window regains units after the end of each
    expect(await remaining('/', '/')).toEqual([99, 98])
    // The policy refuses requests long before the shield would.
    const sent = await Promise.all(
      Array.from({ length: 150 }, async () => (await send('/')).status),
    )
    // A few more pass if the next minute begins meanwhile.
    expect(sent.filter((status) => status === 200).length).toBeGreaterThanOrEqual(98)
    expect(sent).toContain(429)
    // A request waits for the binding for 100 ms, which a busy machine may exceed.
    const lines = running.stack.worker.logs.filter((line) => line.includes('"shield"'))
    expect(lines.filter((line) => !line.includes('"code":"timeout"'))).toEqual([])
  },
  async cluster({ remaining }) {
    const forTenant = { headers: { 'x-tenant': 't-2' } }
    for (const ip of ['192.0.2.11', '192.0.2.12'])
      expect(await remaining(['/', { ip }], ['/', { ip, ...forTenant }])).toEqual([99, 98])
  },
  async leases() {
    const run = newRun('leases')
    const calls = () => callsOf(run, 300, '/search')
    expect(await calls()).toBeLessThan(150)
    // A stall of the machine may cause more calls.
    let fewest = await calls()
    for (let time = 0; time < 2 && fewest >= 20; time++) fewest = Math.min(fewest, await calls())
    expect(fewest).toBeLessThan(20)
  },
}
