import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createConsumer } from './support/consumer.ts'
import { expectLimitedWorker, template } from './support/workers-project.ts'

test('A Worker without Hono compiles, bundles and limits requests with createGateway.', async () => {
  const project = await createConsumer({
    packages: ['wrangler@4.156.0', 'typescript@7.0.2'],
    files: {
      ...template,
      'tsconfig.json': JSON.stringify({
        compilerOptions: {
          target: 'ES2022',
          module: 'ES2022',
          moduleResolution: 'Bundler',
          lib: ['ES2022'],
          strict: true,
          skipLibCheck: true,
        },
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
