import { expect, test } from 'vitest'
import { createConsumer } from './support/consumer.ts'
import { expectLimitedServer } from './support/server-project.ts'

test('An Express app in TypeScript compiles, and limits requests with sluice/node.', async () => {
  const project = await createConsumer({
    packages: [
      'express@5.3.0',
      '@types/express@5.0.6',
      '@types/node@24.19.2',
      'node@24.21.0',
      'typescript@7.0.2',
    ],
    files: {
      'package.json': '{ "type": "module", "allowScripts": { "node": true } }',
      'tsconfig.json': JSON.stringify({
        compilerOptions: {
          target: 'ES2022',
          module: 'NodeNext',
          types: ['node'],
          strict: true,
        },
      }),
      'main.ts': `import express from 'express'
import { rateLimiter } from 'sluice/node'

const app = express()
app.use(
  rateLimiter({
    clientAddress: 'socket',
    deadline: '10s',
    policies: [{ name: 'ten', limit: 10, window: '1m', onMissingKey: 'refuse' }],
  }),
)
app.get('/', (req, res) => {
  res.json({ remaining: req.rateLimit?.limits[0]?.remaining })
})
app.listen(Number(process.env.PORT), '127.0.0.1')
`,
    },
  })
  expect(await project.run('tsc')).toBe('')
  await expectLimitedServer(project, ['node', 'main.js'])
})
