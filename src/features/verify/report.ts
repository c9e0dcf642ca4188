/** `GET /_sluice/v1/verify`: what `sluice verify` compares with its own folder. */
import { credentialsOf } from '../../core/base/bindings.ts'
import { sha256 } from '../../core/base/digest.ts'
import type { RuntimeContext } from '../../core/base/runtime.ts'
import { type DatabaseReport, probe } from '../../core/decide/operate.ts'
import type { Limiter } from '../../core/feature.ts'
import type { Claim } from './field.ts'
import { type Fingerprints, fingerprints } from './fingerprint.ts'

/** The database of a deployment. */
export interface VerifiedDatabase extends DatabaseReport {
  /** The time of the database minus the time of this server, ms. Exact to the round trip. */
  clockOffsetMs?: number
  /** A digest of the URL of the database. Absent if the URL is not in the variables. */
  id?: string
}

/** The state of a deployment. */
export interface VerifyReport {
  v: 1
  /** Repeats the number of the request, which a cache cannot know. */
  count: number
  /** The time of this server, ms since the epoch. */
  now: number
  deployed: Fingerprints
  /** True if live policies have replaced those of the deployment. */
  live: boolean
  policies: { name: string; mode: 'enforce' | 'shadow' }[]
  database: VerifiedDatabase
}

export async function report(
  { config, rulesOf, partsOf }: Limiter,
  runtime: RuntimeContext,
  { count, nonce }: Claim,
): Promise<VerifyReport> {
  const parts = partsOf(runtime.env)
  const rules = rulesOf(runtime)
  const { url } = credentialsOf(runtime.env)
  const { database, ...clock } = await probe(parts.database, parts.nameSubject, ['verify', nonce])
  return {
    v: 1,
    count,
    now: Date.now(),
    deployed: await fingerprints(config),
    live: rules.config !== config,
    policies: rules.config.policies.map(({ name, mode }) => ({ name, mode })),
    database: { ...(url && { id: await databaseId(url) }), ...database, ...clock },
  }
}

/** The digest by which two sides compare the URL of a database. */
export const databaseId = async (url: string): Promise<string> =>
  (await sha256(url.replace(/\/+$/, ''))).slice(0, 12)
