import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import {
  checkImports,
  cliViolations,
  cycles,
  packageViolations,
  violations,
} from '../../tools/imports.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

test('Every import in src, cli and packages follows the import rule, and there is no import cycle.', async () => {
  expect(await checkImports(root)).toEqual([])
})

test.each([
  ['core/decide/decide.ts', "import { Hono } from 'hono'"],
  ['core/decide/decide.ts', "import type { Context } from 'hono/tiny'"],
  ['core/decide/decide.ts', "import { createGateway } from '../../hosts/worker/gateway.ts'"],
  ['core/decide/decide.ts', "import { build } from '../../../dev/build.ts'"],
  ['core/decide/decide.ts', "import { startRedis } from 'sluice-upstash-bridge'"],
  [
    'core/decide/decide.ts',
    "import { startRedis } from '../../../packages/upstash-bridge/src/index.ts'",
  ],
  ['core/decide/decide.ts', "import { watchStall } from '../../../bench/index.ts'"],
  ['core/decide/decide.ts', "import { useServer } from '../support/server.ts'"],
  ['core/decide/decide.ts', "import text from '../../../lua/decide.lua'"],
  ['core/decide/decide.ts', "import { StoreError } from '../base/errors'"],
  ['core/decide/decide.ts', "import { readFile } from 'node:fs'"],
  ['hosts/app/middleware.ts', "import { Redis } from '@upstash/redis'"],
  ['unknown/file.ts', "import { StoreError } from '../base/errors.ts'"],
  ['core/decide/decide.ts', "import '../../hosts/worker/gateway.ts'"],
  ['core/decide/decide.ts', "const x = await import('../../hosts/worker/gateway.ts')"],
  ['core/config/parse.ts', "export {\n  a,\n  b,\n} from '../decide/decide.ts'"],
  ['core/connection/breaker.ts', "import type { Policy } from '../config/parse.ts'"],
  ['core/decide/decide.ts', "import { bodies } from '../../features/bodies/index.ts'"],
  ['features/bodies/index.ts', "import { observe } from '../observe/index.ts'"],
  ['client/client.ts', "import { schema } from '../api/schema.ts'"],
])('The file src/%s must not contain the line: %s', (file, line) => {
  expect(violations(file, line)).toHaveLength(1)
})

test('The client may import types of the decision API.', () => {
  expect(violations('client/client.ts', "import type { Ask } from '../api/schema.ts'")).toEqual([])
})

test('Files that import each other are reported as a cycle.', () => {
  const texts = new Map([
    ['a/one.ts', "import { two } from './two.ts'"],
    ['a/two.ts', "import type { three } from '../three.ts'"],
    ['three.ts', "export { one } from './a/one.ts'"],
    ['four.ts', "import './three.ts'"],
  ])
  expect(cycles(texts)).toEqual(['cycle: a/one.ts -> a/two.ts -> three.ts -> a/one.ts'])
})

test('A cycle through the entry file of a package is reported.', () => {
  const texts = new Map([
    ['packages/one/src/index.ts', "export { two } from '../../../two.ts'"],
    ['two.ts', "import { one } from 'one'"],
  ])
  const entries = new Map([['one', 'packages/one/src/index.ts']])
  expect(cycles(texts, entries)).toEqual([
    'cycle: packages/one/src/index.ts -> two.ts -> packages/one/src/index.ts',
  ])
})

test('An import of a benchmark in the command line is reported.', () => {
  const line = "const { main } = await import('../bench/simulate/main.ts')"
  expect(cliViolations('cli/commands.ts', line)).toHaveLength(1)
  expect(cliViolations('cli/commands.ts', "import { a } from './a.ts'")).toEqual([])
})

describe('imports of a package', () => {
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
  ])('The file %s of a package must not contain the line: %s', (file, line) => {
    expect(packageViolations(`packages/one/${file}`, line, manifest)).toHaveLength(1)
  })
  test.each([
    ['src/index.ts', "import { two } from './two.ts'"],
    ['src/index.ts', "import { createClient } from 'redis'"],
    ['src/index.ts', "import { readFile } from 'node:fs/promises'"],
    ['test/x.test.ts', "import { startRedis } from '../src/index.ts'"],
    ['test/x.test.ts', "import { test } from 'vitest'"],
  ])('The file %s of a package may contain the line: %s', (file, line) => {
    expect(packageViolations(`packages/one/${file}`, line, manifest)).toEqual([])
  })
})
