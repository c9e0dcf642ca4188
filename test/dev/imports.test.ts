import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { checkImports, cycles, violations } from '../../dev/imports.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

test('every import in src follows the rule of its room, and no files import each other in a cycle', async () => {
  expect(await checkImports(root)).toEqual([])
})

test.each([
  ['limiter/decide.ts', "import { Hono } from 'hono'"],
  ['limiter/decide.ts', "import type { Context } from 'hono/tiny'"],
  ['limiter/decide.ts', "import { createGateway } from '../gateway/gateway.ts'"],
  ['limiter/decide.ts', "import { startRedis } from '../../dev/redis.ts'"],
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
