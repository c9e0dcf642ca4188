/** A verified request on its way through the limiter. */
import type { Reason } from '../../core/base/decision.ts'
import { formatAddress } from '../../core/base/ip.ts'
import type { Part } from '../../core/base/part.ts'
import type { Outcome } from '../../core/decide/question.ts'
import type { Match, Matched, Unmet } from '../../core/program/match.ts'
import type { Verified } from '../../core/program/verified.ts'
import { knownAddress, type RequestView } from '../../core/request/view.ts'
import { ANSWER, type Claim } from './field.ts'

/** How the policy that a verified request names has decided it. */
export type VerifiedPolicy =
  | {
      applies: true
      mode: 'enforce' | 'shadow'
      /** The units of the quota, for a request with the reserve of this one. */
      limit: number
      cost: number
      /** The state of the quota. Absent if nothing was counted, because a list or the fallback decided. */
      state?: { allowed: boolean; remaining: number; retryAfterMs: number | null; banned?: true }
    }
  | {
      applies: false
      /** Why: a field of `match`, an entry of `allow`, or a missing part of the key. */
      unmet: 'match' | 'allow' | 'key' | 'deny' | 'unknown'
      name?: string
    }

/** The value of the field `Sluice-Verified`, as JSON. */
export interface VerifiedDecision {
  count: number
  allowed: boolean
  reason: Reason
  /** The wait of a refused request, ms. Absent if it never passes, and for an admitted one. */
  retryAfterMs?: number
  /** The field `Retry-After` of a refusal, as this server has sent it. */
  retryAfter?: string
  /** The policies that refuse. Absent for an admitted request. */
  refusedBy?: string[]
  /** The part that decided: the store, or why it was not asked. */
  by: 'store' | 'cache' | 'lease' | 'shield' | 'local' | 'list' | 'allow' | 'deny'
  /** The time of this server, ms since the epoch. */
  now: number
  /** The time of the decision by the clock of the store, ms since the epoch. */
  decidedAt?: number
  /** The policy that the request names. */
  policy?: VerifiedPolicy
  /** The address of the client, if it is known. */
  address?: string
  /** The fields in which a proxy reports the address of its client, as this server received them. */
  forwarded?: Record<string, string>
}

export function verifiedBy(claim: Claim): Verified {
  const own: Part = ['verify', claim.nonce]
  return {
    through: claim.through === true,
    mark: ({ policies, shield, ...rest }) => ({
      ...rest,
      ...(shield && { shield: [...shield, own] }),
      policies: policies.map((one) => marked(one, own, claim)),
    }),
    fields: (outcome, matched, from, sent) => ({
      [ANSWER]: ascii(JSON.stringify(decided(claim, outcome, matched, from, sent))),
    }),
  }
}

function marked(match: Match, own: Part, { policy, cost = 0 }: Claim): Match {
  const marked: Match = { ...match, partitionKey: [...match.partitionKey, own] }
  const { penalty, wait } = match.terms
  // The proof is a refusal, so the request does not wait for its turn.
  if (wait) marked.terms = { ...marked.terms, wait: undefined }
  // Operators have no use for its ban in the list of bans, which is bounded.
  if (penalty) marked.terms = { ...marked.terms, penalty: { ...penalty, list: false } }
  // Each request counts as another value.
  if (match.distinct) marked.distinct = match.distinct.map(([label]) => [label, undefined])
  if (match.terms.name === policy && cost > match.cost) marked.cost = cost
  return marked
}

function decided(
  { count, policy }: Claim,
  outcome: Outcome,
  matched: Matched,
  from: Pick<RequestView, 'address' | 'request'>,
  sent: Headers,
): VerifiedDecision {
  const { allowed, reason, retryAfterMs, fallback, decidedAt, limits } = outcome.decision
  const address = knownAddress(from)
  const forwarded = forwardedIn(from.request)
  const retryAfter = sent.get('retry-after')
  const refusing = limits.filter((one) => !one.allowed && one.mode === 'enforce')
  return {
    count,
    allowed,
    reason,
    ...(retryAfterMs && { retryAfterMs }),
    ...(!allowed && retryAfter !== null && { retryAfter }),
    ...(!allowed && { refusedBy: refusing.map((one) => one.policy) }),
    by: fallback && fallback !== 'local' ? fallback : (outcome.decidedBy ?? fallback ?? 'store'),
    now: Date.now(),
    ...(decidedAt !== undefined && { decidedAt }),
    ...(policy !== undefined && { policy: policyOf(policy, outcome, matched) }),
    ...(address && { address: formatAddress(address) }),
    ...(forwarded && { forwarded }),
  }
}

function policyOf(
  name: string,
  { decision: { limits } }: Outcome,
  { policies, unmet, denied }: Matched,
): VerifiedPolicy {
  const found = policies.find((one) => one.terms.name === name)
  if (!found) {
    const why = unmet?.find((one) => one.policy.name === name)
    if (why) return { applies: false, ...whyUnmet(why) }
    return denied
      ? { applies: false, unmet: 'deny', name: denied.by }
      : { applies: false, unmet: 'unknown' }
  }
  const state = limits.find((one) => one.policy === name)
  const { mode, limit, burst, algorithm } = found.terms
  const isBucket = algorithm === 'token-bucket'
  return {
    applies: true,
    mode,
    limit: (isBucket ? burst : limit) - (found.floor ?? 0),
    cost: found.cost,
    ...(state && {
      state: {
        allowed: state.allowed,
        remaining: state.remaining,
        retryAfterMs: state.retryAfterMs,
        ...(state.bannedForMs && { banned: true as const }),
      },
    }),
  }
}

function whyUnmet(one: Unmet): { unmet: 'match' | 'allow' | 'key'; name?: string } {
  if (one.unmet === 'match') return { unmet: 'match', name: one.field }
  if (one.unmet === 'allow') return { unmet: 'allow', name: one.entry }
  const name = one.missing ?? one.unreadable ?? one.unverified
  return { unmet: 'key', ...(name !== undefined && { name }) }
}

const FORWARDED = ['x-forwarded-for', 'x-real-ip', 'forwarded', 'cf-connecting-ip']

function forwardedIn({ headers }: Request): Record<string, string> | undefined {
  const found = FORWARDED.flatMap((name) => {
    const value = headers.get(name)
    return value === null ? [] : [[name, value.slice(0, 200)] as const]
  })
  return found.length > 0 ? Object.fromEntries(found) : undefined
}

/** Escapes what a header field cannot contain. JSON is ASCII in all other places. */
const ascii = (json: string) =>
  json.replace(/[^\x20-\x7e]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** The most verified requests of one isolate in a minute. A check of ten policies needs about 200. */
const PER_MINUTE = 2_000

/** Limits verified requests, so that a stolen token cannot fill the database with counters. Above the limit the field has no effect. */
export function createAllowance() {
  let minute = 0
  let left = 0
  return {
    /** @param now ms since the epoch */
    takes(now: number): boolean {
      const current = Math.floor(now / 60_000)
      if (current !== minute) [minute, left] = [current, PER_MINUTE]
      left -= 1
      return left >= 0
    },
  }
}
