import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startStack } from '../../tools/stack.ts'
import { read } from '../support/pages.ts'
import { type Consumer, createConsumer } from './support/consumer.ts'
import { expectOneRefusal } from './support/eleven.ts'

/** The files that `npm create hono` writes for the template cloudflare-workers (honojs/starter), except src/index.ts. */
const template: Record<string, string> = {
  'package.json': `{
  "name": "my-app",
  "type": "module",
  "scripts": {
    "dev": "wrangler dev",
    "deploy": "wrangler deploy --minify",
    "cf-typegen": "wrangler types --env-interface CloudflareBindings"
  }
}
`,
  'tsconfig.json': `{
  "compilerOptions": {
    "target": "ESNext",
    "module": "ESNext",
    "moduleResolution": "Bundler",
    "strict": true,
    "skipLibCheck": true,
    "lib": ["ESNext"],
    "jsx": "react-jsx",
    "jsxImportSource": "hono/jsx"
  },
}`,
  'wrangler.jsonc': `{
  "$schema": "node_modules/wrangler/config-schema.json",
  "name": "my-app",
  "main": "src/index.ts",
  "compatibility_date": "2025-08-03"
}
`,
}

/** Builds the Worker of a project with its own wrangler, and expects the eleventh request to be refused in workerd. */
async function expectLimitedWorker({ folder, run }: Consumer): Promise<void> {
  const outdir = join(folder, 'out')
  await run('wrangler', 'deploy', '--dry-run', '--minify', '--outdir', outdir)
  const stack = await startStack({ worker: outdir })
  try {
    await expectOneRefusal(() => stack.fetch('/'))
    expect((await stack.fetch('/', { ip: '203.0.113.8' })).status).toBe(200)
  } finally {
    await stack.stop()
  }
}

const bundled = { target: 'ES2022', module: 'ES2022', moduleResolution: 'Bundler' }

test('A Worker without Hono compiles, bundles and limits requests with createGateway.', async () => {
  const project = await createConsumer({
    packages: ['wrangler@4.156.0', 'typescript@7.0.2'],
    files: {
      ...template,
      'tsconfig.json': JSON.stringify({
        compilerOptions: { ...bundled, lib: ['ES2022'], strict: true, skipLibCheck: true },
      }),
      'src/index.ts': `import { createGateway } from 'sluice'

export default createGateway({
  deadline: '10s', // so that a slow machine causes no store errors
  policies: [{ name: 'ten', limit: 10, window: '1m' }],
})
`,
    },
  })
  expect(await readdir(join(project.folder, 'node_modules'))).not.toContain('hono')
  await project.run('wrangler', 'types')
  expect(await project.run('tsc', '--noEmit')).toBe('')
  await expectLimitedWorker(project)
})

const readme = /^```ts hono-app\n(.*?)^```/ms.exec(read('README.md'))![1]!
const guide = /^```ts hono-worker\n(.*?)^```/ms.exec(read('docs/guides/hono-app.md'))![1]!

test('A Hono app for Workers, as npm create hono makes it, compiles, bundles and limits requests.', async () => {
  const project = await createConsumer({
    packages: ['hono@4.13.19', 'wrangler@4.156.0', 'typescript@7.0.2'],
    files: {
      ...template,
      'src/index.ts': `import { Hono } from 'hono'
import { rateLimiter } from 'sluice'

const app = new Hono<{ Bindings: CloudflareBindings }>()
  .use(rateLimiter({ deadline: '10s', policies: [{ name: 'ten', limit: 10, window: '1m' }] }))
  .get('/', (c) => c.text(\`\${c.var.rateLimit.limits[0]?.remaining} left\`))

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
