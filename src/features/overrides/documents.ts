/** Limits that operators set for single keys, and the list of them. */
import type { Bindings } from '../../core/base/bindings.ts'
import type { LimitStatus } from '../../core/base/decision.ts'
import type { Config, Policy } from '../../core/config/parse.ts'
import type { Limit } from '../../core/connection/store.ts'
import { recordOf } from '../../core/connection/upstash/script.ts'
import { createUpstashReader } from '../../core/connection/upstash/upstash.ts'
import { databaseIn } from '../../core/decide/database.ts'
import { operate, PROBE, type Resizing } from '../../core/decide/operate.ts'
import type { LimiterParts } from '../../core/decide/question.ts'
import type { NameSubject } from '../../core/decide/subject.ts'
import type { Match } from '../../core/program/match.ts'

/** A limit that an operator has set for a key. */
export interface OverrideReport {
  /** The client, as `GET /stats` names it by default. */
  subject: string
  limit: number
  /** How long the limit stays in force, ms. */
  overriddenForMs: number
}

/** A record whose subject no client has: its tags are the subjects with a limit of an operator. Without it, Redis would scan all records. */
const indexOf = (policy: Policy, nameSubject: NameSubject) =>
  nameSubject([['overrides', policy.tag]])

/**
 * Sets or removes the limit of one key, and updates the index. They need calls of their own, since a Redis Cluster accepts the keys of
 * one subject in a call. The index has every limit in force, even if a call fails: it is written first and cleaned after the limit. The
 * last call repeats the first one, because another operator may have changed the same key meanwhile.
 */
export async function changeLimit(
  operation: Resizing,
  match: Match,
  parts: LimiterParts,
  waitUntil: (promise: Promise<unknown>) => void,
): Promise<LimitStatus> {
  const { nameSubject, store } = parts
  const [index, subject] = await Promise.all([
    indexOf(match.terms, nameSubject),
    match.subject ?? nameSubject(match.partitionKey),
  ])
  const terms = { ...PROBE, tag: subject, windowMs: 1 }
  const override = { share: 0, scalesBurst: true }
  const limits: Limit[] = [{ subject: index, terms, cost: 0, override }]
  const list = () => store.decide([{ ...operation, limits }], { deadlineMs: 5_000, waitUntil })
  const apply = () => operate(operation, [match], parts, { waitUntil })
  let status: LimitStatus | undefined
  for (const step of operation.mode === 'override' ? [list, apply, list] : [apply, list, apply]) {
    const answer = await step()
    if ('limits' in answer) status = answer
  }
  return status!
}

/** Lists the limits of a policy that operators have set, each key once. */
export async function listLimits(
  policy: Policy,
  config: Pick<Config, 'store' | 'namespace'>,
  nameSubject: NameSubject,
  env: Bindings,
): Promise<OverrideReport[]> {
  const key = recordOf(await indexOf(policy, nameSubject), config.namespace)
  const text = await createUpstashReader(databaseIn(config, env))(key)
  const found = [...(text ?? '').matchAll(/([\w-]+)-limit:(\d+):(\d+):(\d+);/g)]
  const now = Date.now()
  return found
    .map(([, subject, time, life, units]) => ({
      subject: subject!,
      limit: Number(units),
      overriddenForMs: Number(time) + Number(life) - now,
    }))
    .filter(({ overriddenForMs }) => overriddenForMs > 0)
}
