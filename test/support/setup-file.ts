/**
 * Runs before each test file. One process runs many files, because importing Miniflare takes longer than most tests.
 * The modules stay, and with them what they remember, as in an isolate that serves many requests. This file gives each test file fresh
 * environment variables and globals, and a repeated try of a test an empty Redis.
 */
import fc from 'fast-check'
import { afterAll, beforeEach, vi } from 'vitest'

const env = { ...process.env }

if (process.env.SEED)
  fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: Number(process.env.SEED) })

// Tests that run at the same time have keys of their own.
beforeEach(async ({ task }) => {
  if (!task.result?.retryCount || task.concurrent) return
  const { emptyBorrowed } = await import('./borrow-redis.ts')
  await emptyBorrowed()
})

afterAll(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
  vi.unstubAllGlobals()
  vi.unstubAllEnvs()
  for (const name of Object.keys(process.env)) if (!(name in env)) delete process.env[name]
  Object.assign(process.env, env)
})
