import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { pageAt, read, sectionOf } from '../support/pages.ts'
import { createConsumer } from './support/consumer.ts'

const { exports, peerDependencies } = JSON.parse(read('package.json'))
const entries = Object.keys(exports)
  .filter((entry) => !entry.endsWith('.json'))
  .map((entry) => entry.replace('.', 'sluice'))

const bundled = {
  target: 'es2022',
  module: 'esnext',
  moduleResolution: 'bundler',
  strict: true,
  noEmit: true,
  types: [],
}

/** Projects of which each has an option that the repository does not have. */
const projects: [title: string, options: object][] = [
  ['a browser library and no Node types', { lib: ['es2022', 'dom', 'dom.iterable'] }],
  ['the library of a Web Worker', { lib: ['es2022', 'webworker'] }],
  ['the module resolution of Node', { module: 'nodenext', moduleResolution: 'nodenext' }],
]

test('The types of all entries compile with TypeScript 5.9 and 7, without skipLibCheck.', async () => {
  const strictest = { ...bundled, exactOptionalPropertyTypes: true, skipLibCheck: false }
  const configs = projects.map(([, options], at) => [
    `tsconfig.${at}.json`,
    JSON.stringify({ compilerOptions: { ...strictest, ...options }, files: ['all.ts'] }),
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
      'all.ts': entries.map((entry, at) => `export * as entry${at} from '${entry}'\n`).join(''),
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

test('An app without Hono compiles with TypeScript 5.9 and 7, also with skipLibCheck off.', async () => {
  const project = await createConsumer({
    packages: ['typescript@7.0.2', 'typescript-5@npm:typescript@5.9.3'],
    files: {
      'package.json': '{ "type": "module" }',
      'tsconfig.json': JSON.stringify({
        compilerOptions: { ...bundled, skipLibCheck: false, lib: ['es2022', 'dom'] },
      }),
      'app.ts': `import { createSluice, type Decision, defineConfig } from 'sluice'
import { createClient } from 'sluice/client'

export const config = defineConfig({ policies: [{ name: 'per-ip', limit: 100, window: '1m' }] })
export const allowed = (decision: Decision): boolean => decision.allowed
export const client = createClient({ url: 'https://limits.example.com', token: 'token' })
export const sluice = createSluice(config)
// @ts-expect-error
createSluice({ policies: [{ name: 'per-ip', limit: 100, window: '1 minute' }] })
`,
    },
  })
  await project.node('node_modules/typescript-5/lib/tsc.js', '-p', '.')
  await project.node('node_modules/typescript/bin/tsc', '-p', '.')
})

test('A CommonJS app of TypeScript 5 finds the types of every entry, and requires it.', async () => {
  const project = await createConsumer({
    packages: ['hono@4.13.19', 'graphql@17.1.0', 'typescript@5.9.3'],
    files: {
      'package.json': '{ "type": "commonjs" }',
      'tsconfig.json': JSON.stringify({
        compilerOptions: { target: 'es2022', module: 'commonjs', strict: true, outDir: 'out' },
        files: ['all.ts', 'nest.ts'],
      }),
      'all.ts': entries.map((entry, at) => `export * as entry${at} from '${entry}'\n`).join(''),
      'nest.ts': `import { SluiceThrottlerStorage } from 'sluice/nest'
console.log(typeof SluiceThrottlerStorage)
// @ts-expect-error
export const wrong: number = SluiceThrottlerStorage
`,
    },
  })
  await project.node('node_modules/typescript/lib/tsc.js', '-p', '.')
  expect(await project.node('out/nest.js')).toBe('function\n')
})

test('A test of Jest with the template of Nest loads every entry for Node by the line of the guide.', async () => {
  // sluice/rpc imports cloudflare:workers, and sluice/testing reads import.meta, which CommonJS does not have.
  const onNode = entries.filter((entry) => !/\/(rpc|testing)$/.test(entry))
  const line = /`(transformIgnorePatterns: [^`]*)`/.exec(
    sectionOf(pageAt('docs/guides/other-libraries.md'), 'Nest'),
  )![1]
  const project = await createConsumer({
    packages: [
      ...['hono@4.13.19', 'graphql@17.1.0', 'typescript@5.9.3'],
      ...['jest@30.5.2', 'ts-jest@29.4.15', '@types/jest@30.0.0'],
    ],
    files: {
      'package.json': '{ "type": "commonjs" }',
      'tsconfig.json': JSON.stringify({
        compilerOptions: { target: 'es2023', module: 'commonjs', allowJs: true, strict: true },
      }),
      'jest.config.js': `module.exports = {
  moduleFileExtensions: ['js', 'json', 'ts'],
  transform: { '^.+\\\\.(t|j)s$': ['ts-jest', { diagnostics: { exclude: ['**/node_modules/**'] } }] },
  testEnvironment: 'node',
  ${line},
}
`,
      'all.spec.ts': `${onNode.map((entry, at) => `import * as entry${at} from '${entry}'\n`).join('')}
test('Every entry has exports.', () => {
  const all = [${onNode.map((_, at) => `entry${at}`).join()}]
  expect(all.map((one) => Object.keys(one).length > 0)).not.toContain(false)
})
`,
    },
  })
  await project.run('jest')
})

test('An app with the oldest supported Hono compiles with TypeScript 5, also with skipLibCheck off.', async () => {
  const oldest = /^\^(\d+\.\d+\.\d+)$/.exec(peerDependencies.hono)![1]!
  const project = await createConsumer({
    packages: [`hono@${oldest}`, 'typescript@5.9.3'],
    files: {
      'package.json': '{ "type": "module" }',
      'tsconfig.json': JSON.stringify({
        compilerOptions: { ...bundled, module: 'es2022', lib: ['es2022', 'webworker'] },
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
// @ts-expect-error: this app does not know its middleware
app.get('/', (c) => c.json(c.var.rateLimit.limits[0]?.remaining ?? 0))
app
  .use(rateLimiter({ policies: [] }))
  .get('/behind', (c) => c.json([c.var.rateLimit.limits[0]?.remaining ?? 0, c.var.user.length]))
app.mount('/limits', createGateway({ policies: [] }).fetch)
export const client = createClient({ url: 'https://limits.example.com', token: 'token' })
export const codes = lint({}).map(({ code }) => code)
export default app
`,
    },
  })
  expect(await project.run('tsc')).toBe('')
})

test('The options of the package are those of the source, of which the build writes them as plain interfaces.', () => {
  const cache = fileURLToPath(new URL('../../.cache/', import.meta.url))
  mkdirSync(cache, { recursive: true })
  const folder = mkdtempSync(`${cache}types-`)
  onTestFinished(() => rmSync(folder, { recursive: true }))
  writeFileSync(
    `${folder}/tsconfig.json`,
    JSON.stringify({ extends: '../../tsconfig.json', include: [], files: ['all.ts'] }),
  )
  writeFileSync(`${folder}/all.ts`, OPTIONS)
  const compiler = fileURLToPath(new URL('../../node_modules/typescript/bin/tsc', import.meta.url))
  execFileSync(process.execPath, [compiler, '-p', folder], { stdio: 'inherit' })
})

/** What a store and a feature do is internal, and is not in the package. */
const OPTIONS = `
import type * as client from '../../dist/client.d.ts'
import type * as objects from '../../dist/durable-objects.d.ts'
import type * as features from '../../dist/features.d.ts'
import type * as graphql from '../../dist/graphql.d.ts'
import type * as index from '../../dist/index.d.ts'
import type * as sourceClient from '../../src/client/client.ts'
import type * as sourceFeatures from '../../src/features/index.ts'
import type * as sourceGraphql from '../../src/features/graphql/graphql.ts'
import type * as source from '../../src/index.ts'
import type * as sourceObjects from '../../src/stores/durable-objects/index.ts'

/** Without the names of types, six levels deep. */
type Flat<Type, Depth extends 0[] = []> = Depth['length'] extends 6
  ? Type
  : Type extends (...args: infer Arguments) => infer Result
    ? (...args: { [At in keyof Arguments]: Flat<Arguments[At], [...Depth, 0]> }) => Flat<Result, [...Depth, 0]>
    : Type extends object
      ? { [Name in keyof Type]: Flat<Type[Name], [...Depth, 0]> }
      : Type
type Equal<A, B> =
  (<Type>() => Type extends Flat<A> ? 1 : 2) extends <Type>() => Type extends Flat<B> ? 1 : 2
    ? true
    : { built: Flat<A>; source: Flat<B> }
type Options<All> = { -readonly [Name in keyof All]: All[Name] extends (...args: infer Arguments) => unknown ? Arguments : never }
const equal = <A, B>(_: Equal<A, B>) => {}

equal<Omit<index.ConfigOptions, 'store' | 'use'>, Omit<source.ConfigOptions, 'store' | 'use'>>(true)
equal<Options<typeof features>, Options<typeof sourceFeatures>>(true)
equal<Options<typeof graphql>, Options<typeof sourceGraphql>>(true)
equal<Options<typeof objects>, Options<typeof sourceObjects>>(true)
equal<client.CallOptions | client.RequestDescription, sourceClient.CallOptions | sourceClient.RequestDescription>(true)
// @ts-expect-error
equal<index.PolicyOptions, source.MatchOptions>(true)
`
