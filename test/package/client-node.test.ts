import { expect, test } from 'vitest'
import { startStack } from '../../tools/stack.ts'
import { createConsumer } from './support/consumer.ts'

const TOKEN = 'a-token-of-the-tests'

test('A plain JavaScript program on Node 20 calls the decision API with sluice/client.', async () => {
  const project = await createConsumer({
    packages: ['node@20.19.5'],
    files: {
      'package.json': '{ "type": "module", "allowScripts": { "node": true } }',
      'main.js': `import { createClient } from 'sluice/client'

const [url, token] = process.argv.slice(2)
const api = createClient({ url, token, onError: 'throw', deadlineMs: 30_000 })
const decisions = []
for (let sent = 0; sent < 11; sent++) decisions.push(await api.limit('ten', 'ann'))
console.log(JSON.stringify({ node: process.versions.node, decisions }))
`,
    },
  })
  const stack = await startStack({
    config: { policies: [{ name: 'ten', limit: 10, window: '1m', key: 'header:x-user' }] },
    env: { SLUICE_API_TOKEN: TOKEN },
  })
  try {
    const { node, decisions } = JSON.parse(await project.run('node', 'main.js', stack.url, TOKEN))
    expect(node).toMatch(/^20\./)
    expect(decisions.map(({ allowed }: { allowed: boolean }) => allowed)).toEqual([
      ...Array(10).fill(true),
      false,
    ])
    expect(decisions[10].retryAfterMs).toBeGreaterThan(0)
    expect(decisions[10].limits[0]).toMatchObject({ policy: 'ten', remaining: 0 })
  } finally {
    await stack.stop()
  }
})
