import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { createConsumer } from './support/consumer.ts'

const { peerDependencies } = JSON.parse(
  await readFile(new URL('../../package.json', import.meta.url), 'utf8'),
)

test('An app with the oldest supported Hono compiles with TypeScript 5, also with skipLibCheck off.', async () => {
  const oldest = /^\^(\d+\.\d+\.\d+)$/.exec(peerDependencies.hono)![1]!
  const project = await createConsumer({
    packages: [`hono@${oldest}`, 'typescript@5.9.3'],
    files: {
      'package.json': '{ "type": "module" }',
      'tsconfig.json': JSON.stringify({
        compilerOptions: {
          target: 'ES2022',
          module: 'ES2022',
          moduleResolution: 'Bundler',
          lib: ['ES2022', 'WebWorker'],
          types: [],
          strict: true,
          noEmit: true,
        },
      }),
      'app.ts': `import { Hono } from 'hono'
import { type Bindings, createGateway, rateLimiter } from 'sluice'
import { createClient } from 'sluice/client'
import { lint } from 'sluice/lint'

const app = new Hono<{ Bindings: Bindings; Variables: { user: string } }>()
app.use(
  rateLimiter({
    policies: [{ name: 'per-user', limit: 100, window: '1m', key: (c) => c.get('user') }],
  }),
)
app.get('/', (c) => c.json(c.var.rateLimit.limits[0]?.remaining ?? 0))
app.mount('/limits', createGateway({ policies: [] }).fetch)
export const client = createClient({ url: 'https://limits.example.com', token: 'token' })
export const codes = lint({}).map(({ code }) => code)
export default app
`,
    },
  })
  expect(await project.run('tsc')).toBe('')
})
