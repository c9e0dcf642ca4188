import { startBridge, startRedis } from 'sluice-upstash-bridge'
import { expect, onTestFinished, test } from 'vitest'
import { createConsumer } from './support/consumer.ts'

test('A plain JavaScript program limits requests over two databases with sluice/shards.', async () => {
  const project = await createConsumer({
    files: {
      'package.json': '{ "type": "module" }',
      'main.js': `import { createSluice } from 'sluice'
import { shards } from 'sluice/shards'

const sluice = createSluice({
  clientAddress: 'socket',
  deadline: '10s',
  use: [shards(['eu-1', 'eu-2'])],
  policies: [{ name: 'two', limit: 2, window: '1d' }],
})
const env = JSON.parse(process.argv[2])
const counts = {}
for (let n = 0; n < 40; n++) {
  const remoteAddress = '192.0.2.' + Math.floor(n / 4)
  const { decision } = await sluice.check(new Request('https://www.example.com/'), { env, remoteAddress })
  counts[decision.reason] = (counts[decision.reason] ?? 0) + 1
}
console.log(JSON.stringify(counts))
`,
    },
  })
  const redis = await Promise.all([startRedis(), startRedis()])
  onTestFinished(() => Promise.all(redis.map((one) => one.stop())).then(() => {}))
  const names = ['EU_1', 'EU_2']
  const bridge = await startBridge({
    redis: redis.map(({ url }, n) => ({ url, token: names[n]! })),
  })
  onTestFinished(() => bridge.close())
  const sizeOf = async (token: string) => {
    const headers = { authorization: `Bearer ${token}` }
    const response = await fetch(`${bridge.url}/dbsize`, { headers })
    return ((await response.json()) as { result: unknown }).result
  }
  const env = Object.fromEntries(
    names.flatMap((name) => [
      [`UPSTASH_REDIS_REST_URL_${name}`, bridge.url],
      [`UPSTASH_REDIS_REST_TOKEN_${name}`, name],
    ]),
  )
  const counts = await project.node('main.js', JSON.stringify({ ...env, SLUICE_SECRET: 'local' }))
  expect(JSON.parse(counts)).toEqual({ 'within-limit': 20, limited: 20 })
  for (const name of names) expect(await sizeOf(name)).toBeGreaterThan(0)
})
