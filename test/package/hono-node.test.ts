import { test } from 'vitest'
import { createConsumer } from './support/consumer.ts'
import { expectLimitedServer } from './support/server-project.ts'

test('A Hono app on Node 24 with @hono/node-server limits requests by the address of the connection.', async () => {
  const project = await createConsumer({
    packages: ['hono@4.13.19', '@hono/node-server@2.1.8', 'node@24.21.0'],
    files: {
      'package.json': '{ "type": "module", "allowScripts": { "node": true } }',
      'main.js': `import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import { rateLimiter } from 'sluice'

const app = new Hono()
app.use(
  rateLimiter({
    clientAddress: 'socket',
    deadline: '10s',
    policies: [{ name: 'ten', limit: 10, window: '1m', onMissingKey: 'refuse' }],
  }),
)
app.get('/', (c) => c.text(\`\${c.var.rateLimit.limits[0].remaining} left\`))
serve({ fetch: app.fetch, port: Number(process.env.PORT), hostname: '127.0.0.1' })
`,
    },
  })
  await expectLimitedServer(project, ['node', 'main.js'])
})
