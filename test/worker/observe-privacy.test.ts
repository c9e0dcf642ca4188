/** Threat T11 of SECURITY.md: observation reveals clients, or others read it. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { startStack } from '../../dev/stack.ts'
import type { ConfigOptions } from '../../src/config/options.ts'
import { API_TOKEN, OPERATE } from '../support/api-stack.ts'

const config: ConfigOptions = {
  policies: [
    { name: 'per-ip', limit: 1, window: '1h' },
    { name: 'per-key', limit: 1, window: '1h', key: 'header:x-key', match: { path: '/keyed' } },
  ],
}
const env = { SLUICE_API_TOKEN: API_TOKEN, SLUICE_OPERATE_TOKEN: OPERATE }
/** The parts of the requests that must not leave the Worker. */
const PRIVATE = /198\.51\.100|2001:db8|key-of-a-client|keyed|agent-of-a-client/

let stack: Awaited<ReturnType<typeof startStack>>
beforeAll(async () => {
  stack = await startStack({ config, env, observe: { to: 'log', every: '1s' } })
  for (const ip of ['198.51.100.7', '2001:db8::7']) {
    for (let n = 0; n < 3; n++) {
      const headers = { 'X-Key': 'key-of-a-client', 'User-Agent': 'agent-of-a-client' }
      const response = await stack.fetch('/keyed?q=1', { ip, headers })
      await response.arrayBuffer()
    }
  }
})
afterAll(() => stack?.stop())

const read = (path: string, token?: string) =>
  stack.fetch(`/_sluice/v1${path}`, {
    ...(token && { headers: { Authorization: `Bearer ${token}` } }),
  })

describe('T11: observation', () => {
  test.each(['/stats', '/metrics'])(
    'T11: GET %s needs an operator token, and contains nothing of a request.',
    async (path) => {
      expect((await read(path)).status).toBe(401)
      expect((await read(path, 'a-token-of-nobody-0000')).status).toBe(401)
      expect((await read(path, API_TOKEN)).status).toBe(403)
      const answer = await read(path, OPERATE)
      const text = await answer.text()
      expect(answer.status).toBe(200)
      expect(answer.headers.get('cache-control')).toBe('no-store')
      expect(text).toContain('per-ip')
      expect(text).not.toMatch(PRIVATE)
    },
  )

  test('T11: By default a client is a keyed hash in the counts and in the report to the log.', async () => {
    const { total } = (await (await read('/stats', OPERATE)).json()) as {
      total: { offenders: { subject: string }[] }
    }
    expect(total.offenders.length).toBeGreaterThan(1)
    for (const { subject } of total.offenders) expect(subject).toMatch(/^[\w-]{16}$/)
    const reports = () => stack.worker.logs.filter((line) => line.includes('"decisions"'))
    const request = async () => void (await (await stack.fetch('/', { ip: '198.51.100.8' })).text())
    await vi.waitFor(
      async () => {
        await request() // a request sends the report
        expect(reports().join()).toContain(total.offenders[0]!.subject)
      },
      { timeout: 10_000, interval: 500 },
    )
    expect(stack.worker.logs.join('\n')).not.toMatch(PRIVATE)
  })
})
