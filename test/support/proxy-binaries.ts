import type { ServerBinary } from 'sluice-upstash-bridge'
import { findProxy, type ProxyName } from '../../dev/proxies/binaries.ts'

/**
 * The proxies that run here. One that is neither installed nor to be had is told, and its tests are
 * skipped; not so where CI is set, for a test that never runs there proves nothing.
 */
export async function findInstalledProxies(): Promise<Record<ProxyName, ServerBinary | undefined>> {
  const find = (name: ProxyName) =>
    findProxy(name, console.log).catch((error: Error) => {
      if (process.env.CI) throw error
      console.warn(`SKIPPED: the tests with ${name}.\n${error.message}`)
      return undefined
    })
  const [nginx, caddy] = await Promise.all([find('nginx'), find('caddy')])
  return { nginx, caddy }
}
