/** Runs the example configurations in real nginx and Caddy. They ask a Worker, and forward to the demo origin. */
import type { Echo } from '../../dev/origin.ts'
import type { ProxyName } from '../../dev/proxies/binaries.ts'
import type { Answer } from '../../dev/proxies/client.ts'
import type { Settings } from '../../dev/proxies/example.ts'
import { type RunningProxy, runProxy } from '../../dev/proxies/run.ts'
import type { Stack } from '../../dev/stack.ts'
import type { ConfigOptions } from '../../src/config/options.ts'
import { findInstalledProxies } from './proxy-binaries.ts'

export const token = 'a-token-of-the-api-for-tests'
export const config: ConfigOptions = {
  deny: { name: 'abuse', path: '/forbidden' },
  policies: [
    // Each test uses another path, and so another quota.
    { name: 'page', limit: 2, window: '1h', match: { path: '/page/*' }, key: ['ip', 'path'] },
    {
      name: 'login',
      limit: 1,
      window: '1h',
      match: { path: '/login/*', method: 'POST' },
      key: ['ip', 'path'],
    },
    {
      name: 'by-key',
      limit: 1,
      window: '1h',
      match: { path: '/by-key/*' },
      key: ['header:x-api-key', 'path'],
    },
    { name: 'strict', limit: 9, window: '1h', match: { path: '/strict' }, onStoreError: 'deny' },
  ],
}
export const env = { SLUICE_API_TOKEN: token }

/** The proxy binaries on this machine. */
export const binaries = await findInstalledProxies()
export const names: ProxyName[] = ['nginx', 'caddy']

/** Cleanup steps of a test. `undoAll` runs them, the last one first. */
export function createUndoStack() {
  const undo: (() => Promise<unknown>)[] = []
  return {
    undo,
    async undoAll() {
      for (const step of undo.splice(0).reverse()) await step()
    },
  }
}

/** Runs a proxy in front of the origin of a stack. */
export const runProxyOf = (
  stack: Stack,
  name: ProxyName,
  settings: Partial<Settings> = {},
): Promise<RunningProxy> =>
  runProxy(name, binaries[name]!, {
    api: stack.url,
    token,
    app: stack.origin.url,
    undecided: 'pass',
    // Long, so that a busy machine causes no timeout in tests of other features.
    patience: '10s',
    ...settings,
  })

/** The request that the demo origin received. */
export function echoOf(answer: Answer): Echo {
  return JSON.parse(answer.body)
}
