import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { createConsumer } from './support/consumer.ts'
import { expectLimitedWorker, template } from './support/workers-project.ts'

const read = (path: string) => readFile(new URL(`../../${path}`, import.meta.url), 'utf8')
const readme = /^```ts hono-app\n(.*?)^```/ms.exec(await read('README.md'))![1]!
const guide = /^## Use it\n\n```ts\n(.*?)^```/ms.exec(await read('docs/guides/hono-app.md'))![1]!

test('A Hono app for Workers, as npm create hono makes it, compiles, bundles and limits requests.', async () => {
  const project = await createConsumer({
    packages: ['hono@4.13.19', 'wrangler@4.156.0', 'typescript@7.0.2'],
    files: {
      ...template,
      'src/index.ts': `import { Hono } from 'hono'
import { rateLimiter } from 'sluice'

const app = new Hono<{ Bindings: CloudflareBindings }>()
app.use(rateLimiter({ deadline: '10s', policies: [{ name: 'ten', limit: 10, window: '1m' }] }))
app.get('/', (c) => c.text(\`\${c.var.rateLimit.limits[0]?.remaining} left\`))

export default app
`,
      'src/readme.ts': readme,
      'src/guide.ts': guide,
      'src/mistake.ts': `import { rateLimiter } from 'sluice'
// @ts-expect-error: limit must be a number
rateLimiter({ policies: [{ name: 'ten', limit: '10', window: '1m' }] })
`,
    },
  })
  await project.run('wrangler', 'types', '--env-interface', 'CloudflareBindings')
  expect(await project.run('tsc', '--noEmit')).toBe('')
  await expectLimitedWorker(project)
})
