import { expect, test } from 'vitest'
import { createConsumer } from './support/consumer.ts'

/** Projects of which each has an option that the repository does not have. */
const projects: [title: string, options: object][] = [
  ['a browser library and no Node types', { lib: ['es2022', 'dom', 'dom.iterable'] }],
  ['the library of a Web Worker', { lib: ['es2022', 'webworker'] }],
  ['the module resolution of Node', { module: 'nodenext', moduleResolution: 'nodenext' }],
]

test('The types of all entries compile with TypeScript 5.9 and 7, without skipLibCheck.', async () => {
  const compilerOptions = {
    target: 'es2022',
    module: 'esnext',
    moduleResolution: 'bundler',
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: false,
    noEmit: true,
    types: [],
  }
  const configs = projects.map(([, options], at) => [
    `tsconfig.${at}.json`,
    JSON.stringify({ compilerOptions: { ...compilerOptions, ...options }, files: ['all.ts'] }),
  ])
  const project = await createConsumer({
    packages: [
      'hono@4.13.19',
      'graphql@17.1.0',
      'typescript@7.0.2',
      'typescript-5@npm:typescript@5.9.3',
    ],
    files: {
      ...Object.fromEntries(configs),
      'package.json': '{ "type": "module" }',
      'all.ts': [
        '',
        '/client',
        '/lint',
        '/observe',
        '/bodies',
        '/graphql',
        '/jwt',
        '/leases',
        '/overrides',
        '/refusals',
        '/shards',
        '/testing',
        '/node',
        '/next',
      ]
        .map((entry, at) => `export * as entry${at} from 'sluice${entry}'\n`)
        .join(''),
    },
  })
  const compilers = ['node_modules/typescript-5/lib/tsc.js', 'node_modules/typescript/bin/tsc']
  const failures: string[] = []
  for (const compiler of compilers) {
    for (const [at, [title]] of projects.entries()) {
      await project
        .node(compiler, '-p', `tsconfig.${at}.json`)
        .catch((error: Error) => failures.push(`${title}: ${error.message}`))
    }
  }
  expect(failures).toEqual([])
})
