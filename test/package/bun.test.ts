import { expect, test } from 'vitest'
import { createConsumer } from './support/consumer.ts'
import { expectLimitedServer, honoApp, LOCAL_PROXY } from './support/server-project.ts'

test('A Hono app on Bun limits requests by the address that a trusted proxy sends.', async () => {
  const project = await createConsumer({
    packages: ['hono@4.13.19', 'bun@1.4.5'],
    files: {
      'package.json': '{ "type": "module", "allowScripts": { "bun": true } }',
      'main.ts': honoApp(
        LOCAL_PROXY,
        "export default { fetch: app.fetch, port: Number(process.env.PORT), hostname: '127.0.0.1' }",
      ),
    },
  })
  const send = await expectLimitedServer(project, ['bun', 'main.ts'], {
    'x-forwarded-for': '203.0.113.7',
  })
  expect((await send({ 'x-forwarded-for': '203.0.113.8' })).status).toBe(200)
})
