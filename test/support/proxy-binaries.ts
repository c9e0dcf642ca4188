import type { ServerBinary } from 'sluice-upstash-bridge'
import { findProxy, type ProxyName } from '../../tools/proxies/binaries.ts'

/**
 * Finds the proxies on this machine. A missing proxy is logged and its tests are skipped.
 * @throws where CI is set, because a test that is always skipped proves nothing
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
