import type { Policy } from '../core/config/parse.ts'
import type { Condition } from '../core/config/schema/condition.ts'
import { probe } from '../core/decide/operate.ts'
import type { Call } from '../core/endpoint.ts'
import { labelOf } from '../core/program/key.ts'
import { jsonAnswer } from '../core/respond/response.ts'

/** A policy in the list of policies. */
export interface PolicyReport
  extends Pick<
    Policy,
    'name' | 'algorithm' | 'limit' | 'windowMs' | 'burst' | 'mode' | 'onStoreError'
  > {
  /** The parts of its key. */
  key: string[]
  /** The requests that it applies to, as in the configuration, with lists for single values. Absent for a policy that applies to all. */
  match?: Record<string, unknown>
  /** True if keys of the policy can be banned. */
  bans: boolean
  /** Present if operators may set the limit of single keys. */
  overrides?: true
  /** `store`, or the fallback that decides now. */
  decidedBy: 'store' | Policy['onStoreError']
}

/** Writes a parsed condition as in a configuration. */
const written = ({ header, query, body, not, ...rest }: Condition): Record<string, unknown> =>
  JSON.parse(
    JSON.stringify({
      ...rest,
      header: header && byName(header),
      query: query && byName(query),
      body: body && byName(body),
      not: not?.map(written),
    }),
  )

const byName = (fields: { name: string; values: string[] | undefined }[]) =>
  Object.fromEntries(fields.map(({ name, values }) => [name, values ?? true]))

/** `GET /_sluice/v1/policies`: the current policies, and whether the database answers. */
export async function listPolicies({ rules, parts }: Call): Promise<Response> {
  const { policies } = rules.config
  const { database: store } = await probe(parts.database, parts.nameSubject, ['probe', 'probe'])
  return jsonAnswer({
    policies: policies.map((policy): PolicyReport => {
      const { name, algorithm, limit, windowMs, burst, mode, onStoreError } = policy
      const match = written(policy.match)
      return {
        name,
        algorithm,
        limit,
        windowMs,
        burst,
        mode,
        key: policy.key.map(labelOf),
        ...(Object.keys(match).length > 0 && { match }),
        onStoreError,
        bans: policy.penalty !== undefined,
        ...(policy.overrides && { overrides: true }),
        decidedBy: store.status === 'ok' ? 'store' : onStoreError,
      }
    }),
    store,
  })
}
