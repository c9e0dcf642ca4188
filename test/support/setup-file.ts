/**
 * Runs before each test file. A worker process runs many files, because an import of Miniflare and its like costs more than most
 * tests. Each file still gets modules, environment variables and globals of its own.
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
