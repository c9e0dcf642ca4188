import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { checkImports, violations } from '../dev/imports.ts'

test('imports in src run one way', async () => {
  expect(await checkImports(fileURLToPath(new URL('..', import.meta.url)))).toEqual([])
})

test.each([
  ['limiter.ts', "import { Hono } from 'hono'"],
  ['limiter.ts', "import type { Context } from 'hono/tiny'"],
  ['limiter.ts', "import { gateway } from './gateway.ts'"],
  ['limiter.ts', "import { startRedis } from '../dev/redis.ts'"],
  ['limiter.ts', "import text from '../lua/decide.lua'"],
  ['limiter.ts', "import { StoreError } from './errors'"],
  ['limiter.ts', "import { readFile } from 'node:fs'"],
  ['middleware.ts', "import { Redis } from '@upstash/redis'"],
  ['unheard-of.ts', "import { StoreError } from './errors.ts'"],
  ['limiter.ts', "import './gateway.ts'"],
  ['limiter.ts', "const x = await import('./gateway.ts')"],
  ['policy.ts', "export {\n  a,\n  b,\n} from './limiter.ts'"],
])('%s may not say %s', (file, line) => {
  expect(violations(file, line)).toHaveLength(1)
})
