/**
 * Runs before each test file. One process runs many files, because importing Miniflare takes longer than most tests.
 * This file gives each test file fresh modules, environment variables and globals.
 */
import fc from 'fast-check'
import { afterAll, vi } from 'vitest'

vi.resetModules()
const env = { ...process.env }

if (process.env.SEED)
  fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: Number(process.env.SEED) })

afterAll(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
  vi.unstubAllEnvs()
  for (const name of Object.keys(process.env)) if (!(name in env)) delete process.env[name]
  Object.assign(process.env, env)
})
