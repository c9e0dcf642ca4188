import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { checkImports, cycles, packageViolations, violations } from '../../dev/imports.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

test('every import in src and packages follows its rule, and no files import each other in a cycle', async () => {
  expect(await checkImports(root)).toEqual([])
})

test.each([
  ['limiter/decide.ts', "import { Hono } from 'hono'"],
  ['limiter/decide.ts', "import type { Context } from 'hono/tiny'"],
  ['limiter/decide.ts', "import { createGateway } from '../gateway/gateway.ts'"],
  ['limiter/decide.ts', "import { build } from '../../dev/build.ts'"],
  ['limiter/decide.ts', "import { startRedis } from 'sluice-upstash-bridge'"],
  ['limiter/decide.ts', "import { startRedis } from '../../packages/upstash-bridge/src/index.ts'"],
  ['limiter/decide.ts', "import { watchStall } from '../../bench/index.ts'"],
  ['limiter/decide.ts', "import { useServer } from '../../test/support/server.ts'"],
  ['limiter/decide.ts', "import text from '../../lua/decide.lua'"],
  ['limiter/decide.ts', "import { StoreError } from '../base/errors'"],
  ['limiter/decide.ts', "import { readFile } from 'node:fs'"],
  ['gateway/middleware.ts', "import { Redis } from '@upstash/redis'"],
  ['unknown/file.ts', "import { StoreError } from '../base/errors.ts'"],
  ['limiter/decide.ts', "import '../gateway/gateway.ts'"],
  ['limiter/decide.ts', "const x = await import('../gateway/gateway.ts')"],
  ['config/parse.ts', "export {\n  a,\n  b,\n} from '../limiter/decide.ts'"],
  ['store/breaker.ts', "import type { Policy } from '../config/parse.ts'"],
  ['client/client.ts', "import { schema } from '../api/schema.ts'"],
])('%s must not contain %s', (file, line) => {
  expect(violations(file, line)).toHaveLength(1)
})

test('a client may import the types of the decision API', () => {
  expect(violations('client/client.ts', "import type { Ask } from '../api/schema.ts'")).toEqual([])
})

test('files that import each other are reported as a cycle', () => {
  const texts = new Map([
    ['a/one.ts', "import { two } from './two.ts'"],
    ['a/two.ts', "import type { three } from '../three.ts'"],
    ['three.ts', "export { one } from './a/one.ts'"],
    ['four.ts', "import './three.ts'"],
  ])
  expect(cycles(texts)).toEqual(['cycle: a/one.ts -> a/two.ts -> three.ts -> a/one.ts'])
})

test('a cycle that passes through the public entry of a package is reported', () => {
  const texts = new Map([
    ['packages/one/src/index.ts', "export { two } from '../../../two.ts'"],
    ['two.ts', "import { one } from 'one'"],
  ])
  const entries = new Map([['one', 'packages/one/src/index.ts']])
  expect(cycles(texts, entries)).toEqual([
    'cycle: packages/one/src/index.ts -> two.ts -> packages/one/src/index.ts',
  ])
})

describe('a package', () => {
  const manifest = {
    name: 'one',
    exports: './src/index.ts',
    dependencies: { redis: '1.0.0' },
    devDependencies: { vitest: '1.0.0' },
  }
  test.each([
    ['src/index.ts', "import { StoreError } from '../../../src/base/errors.ts'"],
    ['src/index.ts', "import { startFaults } from '../../one-more/src/index.ts'"],
    ['src/index.ts', "import { startFaults } from 'sluice-fault-proxy'"],
    ['src/index.ts', "import { test } from 'vitest'"],
    ['test/x.test.ts', "import { useServer } from '../../../test/support/server.ts'"],
    ['test/x.test.ts', "import { Hono } from 'hono'"],
  ])('must not have in %s: %s', (file, line) => {
    expect(packageViolations(`packages/one/${file}`, line, manifest)).toHaveLength(1)
  })
  test.each([
    ['src/index.ts', "import { two } from './two.ts'"],
    ['src/index.ts', "import { createClient } from 'redis'"],
    ['src/index.ts', "import { readFile } from 'node:fs/promises'"],
    ['test/x.test.ts', "import { startRedis } from '../src/index.ts'"],
    ['test/x.test.ts', "import { test } from 'vitest'"],
  ])('may have in %s: %s', (file, line) => {
    expect(packageViolations(`packages/one/${file}`, line, manifest)).toEqual([])
  })
})
