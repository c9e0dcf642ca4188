import { test } from 'vitest'
import { createConsumer } from './support/consumer.ts'
import { expectLimitedServer, honoApp } from './support/server-project.ts'

test('A Hono app on Node 24 with @hono/node-server limits requests by the address of the connection.', async () => {
  const project = await createConsumer({
    packages: ['hono@4.13.19', '@hono/node-server@2.1.8', 'node@24.21.0'],
    files: {
      'package.json': '{ "type": "module", "allowScripts": { "node": true } }',
      'main.js': honoApp(
        "'socket'",
        "serve({ fetch: app.fetch, port: Number(process.env.PORT), hostname: '127.0.0.1' })",
        "import { serve } from '@hono/node-server'\n",
      ),
    },
  })
  await expectLimitedServer(project, ['node', 'main.js'])
})
