import { describe, expect, test } from 'vitest'
import type { Database } from '../../../../src/core/decide/question.ts'
import type { Feature } from '../../../../src/core/feature.ts'
import { observe } from '../../../../src/features/observe/index.ts'
import { OPEN_METRICS, reportEndpoint } from '../../../../src/features/observe/open-metrics.ts'
import { createGateway } from '../../../../src/hosts/worker/gateway.ts'
import { API_TOKEN, OPERATE } from '../../../support/api-stack.ts'
import { parseOpenMetrics } from '../../../support/open-metrics.ts'
import { someStats } from '../../../support/stats.ts'

const env = {
  SLUICE_API_TOKEN: API_TOKEN,
  SLUICE_OPERATE_TOKEN: OPERATE,
  UPSTASH_REDIS_REST_URL: 'https://redis.example.com',
  UPSTASH_REDIS_REST_TOKEN: 'a-token',
  ORIGIN: 'https://origin.example.com',
}
const policies = [{ name: 'per-ip', limit: 10, window: '1m' }] as const
const paths = ['/stats', '/metrics']

/** A gateway with an observer that has these counts. */
function gatewayWith(databases: Pick<Database, 'health'>[] = []) {
  const endpoint = reportEndpoint((database) => {
    databases.push(database)
    return someStats()
  })
  const withAnswer: Feature = { ...observe(), compile: () => ({ endpoints: [endpoint] }) }
  return createGateway({ policies: [...policies], use: [withAnswer] })
}

const ask = async (
  app: ReturnType<typeof createGateway>,
  path: string,
  { method = 'GET', token = OPERATE, variables = env }: AskOptions = {},
) =>
  app.fetch(
    new Request(`https://limits.example.com/_sluice/v1${path}`, {
      method,
      headers: token === null ? {} : { Authorization: `Bearer ${token}` },
    }),
    variables,
    { waitUntil() {}, passThroughOnException() {}, props: {} },
  )
interface AskOptions {
  method?: string
  token?: string | null
  variables?: Record<string, string>
}

describe('GET /_sluice/v1/stats and /metrics', () => {
  test('The stats are the counts as JSON.', async () => {
    const response = await ask(gatewayWith(), '/stats')
    expect([response.status, await response.json()]).toEqual([200, someStats()])
    expect(response.headers.get('content-type')).toBe('application/json')
    expect(response.headers.get('cache-control')).toBe('no-store')
  })

  test('The metrics are the counts as OpenMetrics.', async () => {
    const response = await ask(gatewayWith(), '/metrics')
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe(
      'application/openmetrics-text; version=1.0.0; charset=utf-8',
    )
    expect(response.headers.get('content-type')).toBe(OPEN_METRICS)
    expect(response.headers.get('cache-control')).toBe('no-store')
    const families = parseOpenMetrics(await response.text())
    expect(families.get('sluice_store_calls')!.samples[0]!.value).toBe(96)
  })

  test('The observer gets the state of the breaker.', async () => {
    const databases: Pick<Database, 'health'>[] = []
    await ask(gatewayWith(databases), '/stats')
    expect(databases[0]!.health()).toEqual({})
  })

  test.each(paths)('HEAD %s has the header fields of GET, and no body.', async (path) => {
    const app = gatewayWith()
    const [got, head] = [await ask(app, path), await ask(app, path, { method: 'HEAD' })]
    expect([head.status, await head.text()]).toEqual([200, ''])
    expect([...head.headers]).toEqual([...got.headers])
  })

  test.each(paths)('The path %s answers other methods with 405 and Allow.', async (path) => {
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
      const { status, headers } = await ask(gatewayWith(), path, { method })
      expect([method, status, headers.get('allow')]).toEqual([method, 405, 'GET, HEAD'])
    }
  })

  test.each(paths)('The path %s needs a token of the scope operate.', async (path) => {
    for (const [token, expected] of [
      [null, 401],
      ['wrong', 401],
      [`${OPERATE}x`, 401],
      [API_TOKEN, 403],
    ] as const) {
      const { status, headers } = await ask(gatewayWith(), path, { token })
      const type = headers.get('content-type')
      expect([token, status, type]).toEqual([token, expected, 'application/problem+json'])
    }
  })

  test('Both paths are a 404 if no operate token is set, like an unknown path.', async () => {
    const [app, variables] = [gatewayWith(), { ...env, SLUICE_OPERATE_TOKEN: '' }]
    const unknown = await ask(app, '/nothing', { variables })
    expect(unknown.status).toBe(404)
    const detail = await unknown.text()
    for (const path of paths) {
      for (const token of [null, API_TOKEN, OPERATE]) {
        const answer = await ask(app, path, { token, variables })
        expect([answer.status, await answer.text()]).toEqual([404, detail])
      }
    }
  })

  test('If the configuration has no observe, operators are told so by a 404, and others have no access.', async () => {
    const app = createGateway({ policies: [...policies] })
    for (const path of paths) {
      const answer = await ask(app, path, { token: OPERATE })
      expect([answer.status, await answer.text()]).toEqual([
        404,
        expect.stringContaining('Add observe() to use.'),
      ])
      expect((await ask(app, path, { token: null })).status).toBe(401)
      expect((await ask(app, path, { token: API_TOKEN })).status).toBe(403)
    }
  })

  test.each(['/stats/', '/metrics/', '/statsx', '/metrics/x', '/metric'])(
    'The path %s is a 404, or the endpoint that it resolves to.',
    async (path) => {
      const resolves = path.endsWith('/')
      expect((await ask(gatewayWith(), path)).status).toBe(resolves ? 200 : 404)
    },
  )
})
