/** The code of a folder as one of the two sides: its hosts, and those features that both sides have. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { loadSideBeforeUse } from './before-use.ts'
import type { Use } from './configs.ts'
import type { Side } from './side.ts'

const FOLDERS: Readonly<Record<string, string>> = {
  bans: 'bans',
  bodies: 'bodies',
  concurrency: 'concurrency',
  distinct: 'distinct',
  endpoints: 'endpoints',
  headerSets: 'header-sets',
  jitter: 'jitter',
  jwt: 'jwt',
  leases: 'leases',
  live: 'live',
  observe: 'observe',
  overrides: 'overrides',
  plans: 'plans',
  proxies: 'proxies',
  quota: 'quota',
  refusals: 'refusals',
  shards: 'shards',
  shield: 'shield',
  slidingLog: 'sliding-log',
}

/** Features that older commits have in the core. */
const IN_CORE = ['headerSets', 'plans']

export async function loadSide(name: string, folder: string): Promise<Side> {
  const has = (path: string) => existsSync(join(folder, 'src', path))
  if (!has('hosts')) return loadSideBeforeUse(name, folder)
  const from = (path: string) => import(pathToFileURL(join(folder, 'src', path)).href)
  const { createSluice } = await from('hosts/app/sluice.ts')
  const { createGateway } = await from('hosts/worker/gateway.ts')
  const features = new Map<string, (...options: unknown[]) => object>()
  for (const [feature, path] of Object.entries(FOLDERS)) {
    const file = `features/${path}/index.ts`
    if (has(file)) features.set(feature, (await from(file))[feature])
  }
  const made = ([feature, ...options]: Use) => features.get(feature)!(...options)
  return {
    name,
    features: new Set([...features.keys(), ...IN_CORE]),
    create({ host, config, use }, namespace) {
      const own = use.filter(([feature]) => features.has(feature))
      const whole = { ...config, namespace, use: own.map(made) }
      return host === 'app' ? createSluice(whole) : createGateway(whole)
    },
  }
}
