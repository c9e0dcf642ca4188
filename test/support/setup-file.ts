/**
 * Runs before each test file. One process runs many files, because importing Miniflare takes longer than most tests.
 * This file gives each test file fresh modules, environment variables and globals.
 */
import { afterAll, vi } from 'vitest'

vi.resetModules()
const env = { ...process.env }

afterAll(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
  vi.unstubAllEnvs()
  for (const name of Object.keys(process.env)) if (!(name in env)) delete process.env[name]
  Object.assign(process.env, env)
})
