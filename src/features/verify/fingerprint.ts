/** Fingerprints, by which `sluice verify` compares two configurations. */
import { sha256 } from '../../core/base/digest.ts'
import type { Config } from '../../core/config/parse.ts'

/** A function has another text after each build, so all functions count as equal. */
const plain = (_: string, value: unknown): unknown => {
  if (typeof value === 'function') return 'function'
  if (value instanceof RegExp) return String(value)
  if (value instanceof Map || value instanceof Set) return [...value]
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
}

const digest = async (value: unknown) => (await sha256(JSON.stringify(value, plain))).slice(0, 12)

/** Without the findings that its writer accepts, which a built configuration does not have. */
const lean = <Entry extends { accept: unknown }>({ accept: _, ...entry }: Entry) => entry

/** Features that change no decision. `sluice dev` adds one. */
const REPORTING = ['endpoints', 'observe', 'verify']

/** The fingerprints of a configuration: of each policy, and of everything else. */
export interface Fingerprints {
  policies: Record<string, string>
  others: string
}

export async function fingerprints({
  policies,
  use,
  store: _store,
  ...others
}: Config): Promise<Fingerprints> {
  const { origin: _origin, expect: _expect, accept: _accept, allow, deny, ...fields } = others
  const each = policies.map(async (policy) => [policy.name, await digest(lean(policy))] as const)
  return {
    policies: Object.fromEntries(await Promise.all(each)),
    others: await digest({
      ...fields,
      ...{ allow: allow.map(lean), deny: deny.map(lean) },
      // The variable ORIGIN may replace the origin, so it is left out. A limiter ignores what the configuration
      // expects. A feature has only its name in common with its copy.
      use: use.map(({ name }) => name).filter((name) => !REPORTING.includes(name)),
    }),
  }
}
