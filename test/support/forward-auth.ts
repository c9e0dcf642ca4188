/** The examples for nginx and Caddy, run by the real ones, in front of the demo origin, with our Worker as the authority. */
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
    // A path of its own is a quota of its own: tests do not meet each other.
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

/** The binaries of the proxies that this machine has. */
export const here = await findInstalledProxies()
export const names: ProxyName[] = ['nginx', 'caddy']

/** Steps that undo what a test has started, the last one first. */
export function undoing() {
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
  runProxy(name, here[name]!, {
    api: stack.url,
    token,
    app: stack.origin.url,
    undecided: 'pass',
    // A busy machine must not turn a wait into a failure where none is being tested.
    patience: '10s',
    ...settings,
  })

/** What the demo origin says that it got. */
export function seenByApp(answer: Answer): Echo {
  return JSON.parse(answer.body)
}
