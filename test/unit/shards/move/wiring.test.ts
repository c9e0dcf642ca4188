/** A configuration with `moveFrom`: its databases in health checks. */
import { expect, test } from 'vitest'
import { StoreError } from '../../../../src/base/errors.ts'
import { MOVED } from '../../../../src/base/several-stores.ts'
import { parseConfig } from '../../../../src/config/parse.ts'
import { createGateway } from '../../../../src/index.ts'
import { probe } from '../../../../src/limiter/operate.ts'
import { shards } from '../../../../src/shards/index.ts'

const config = {
  origin: 'zone',
  shards: shards(['eu-2', 'eu-3'], { moveFrom: ['eu-1', 'eu-2'] }),
  policies: [{ name: 'per-ip', limit: 1, window: '1m' as const }],
}

test('The databases are those of both lists, the new one first.', () => {
  expect(parseConfig(config).shards?.databases).toEqual(['eu-2', 'eu-3', 'eu-1'])
})

test('Health names the missing variables of the old list, too.', async () => {
  const request = new Request('https://www.example.com/_sluice/health')
  const context = { waitUntil: () => {}, passThroughOnException: () => {}, props: {} }
  const response = await createGateway(config).fetch(request, {}, context as never)
  const { problems } = (await response.json()) as { problems: { variable: string }[] }
  expect(problems.map(({ variable }) => variable)).toContain('UPSTASH_REDIS_REST_URL_EU_1')
})

test.each([
  [MOVED, 'ok'],
  ['ERR sluice: another', 'failing'],
])('A database that refuses the probe with %j is reported as %s.', async (cause, status) => {
  const decide = () => Promise.reject(new StoreError('redis-error', cause))
  const store = { decide, decideEach: async () => [] }
  const database = { name: 'eu-1', store, isOpen: () => false }
  expect(await probe(database, () => 'probe')).toMatchObject({ name: 'eu-1', status })
})
