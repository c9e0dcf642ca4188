import { expect, test } from 'vitest'
import { createConsumer } from './support/consumer.ts'
import { expectLimitedServer, honoApp, LOCAL_PROXY } from './support/server-project.ts'

test('A Hono app on Deno limits requests by the address that a trusted proxy sends.', async () => {
  const project = await createConsumer({
    packages: ['hono@4.13.19', 'deno@2.9.6'],
    files: {
      'package.json': '{ "type": "module", "allowScripts": { "deno": true } }',
      'main.ts': honoApp(
        LOCAL_PROXY,
        "Deno.serve({ port: Number(Deno.env.get('PORT')), hostname: '127.0.0.1' }, app.fetch)",
      ),
    },
  })
  const send = await expectLimitedServer(
    project,
    ['deno', 'run', '--node-modules-dir=manual', '--allow-net', '--allow-env', 'main.ts'],
    {
      'x-forwarded-for': '203.0.113.7',
    },
  )
  expect((await send({ 'x-forwarded-for': '203.0.113.8' })).status).toBe(200)
})
