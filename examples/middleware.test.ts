import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { build } from '../dev/build.ts'
import { type Stack, startStack } from '../dev/stack.ts'

let stack: Stack
let outdir: string
beforeAll(async () => {
  outdir = await mkdtemp(join(tmpdir(), 'sluice-'))
  await build(outdir, 'examples/middleware.ts')
  stack = await startStack({ worker: outdir })
})
afterAll(async () => {
  await stack.stop()
  await rm(outdir, { recursive: true })
})

test('Five logins a minute are allowed, and the sixth gets a 429 with Retry-After.', async () => {
  for (let attempt = 1; attempt <= 5; attempt++) {
    expect((await stack.fetch('/login', { method: 'POST' })).status).toBe(200)
  }
  const response = await stack.fetch('/login', { method: 'POST' })
  expect(response.status).toBe(429)
  expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0)
})

test('The app can read the decision.', async () => {
  const response = await stack.fetch('/', { ip: '192.0.2.99' })
  expect(await response.json()).toEqual({ remaining: 99 })
  expect(response.headers.get('ratelimit')).toMatch(/^"per-ip";r=99;t=\d+$/)
})
