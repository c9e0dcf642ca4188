/** What happened, in a few sentences. */
import { durationText, numberText } from '../../../cli/dashboard/page/text.ts'
import type { LimitState } from '../../../src/core/base/decision.ts'
import type { Policy } from '../../../src/core/config/parse.ts'
import type { Served } from './door.ts'
import { mostWithin } from './figures.ts'
import { momentText, waitText } from './times.ts'

const refuses = ({ allowed, mode }: LimitState) => !allowed && mode === 'enforce'

/** The policies by the number of requests that they refused, most first. */
function refusers(served: readonly Served[]): [name: string, refused: number][] {
  const names = served
    .filter(({ decision }) => !decision.allowed)
    .flatMap(({ decision }) => decision.limits.filter(refuses).map(({ policy }) => policy))
  return [...Map.groupBy(names, (name) => name)]
    .map(([name, list]): [string, number] => [name, list.length])
    .sort(([, one], [, other]) => other - one)
}

/** The policy to look at: the one that refuses most, else the first. */
export const decisiveOf = (served: readonly Served[], policies: readonly Policy[]): Policy => {
  const [most] = refusers(served)
  return policies.find(({ name }) => name === most?.[0]) ?? policies[0]!
}

/** @param start when the traffic begins, ms since the epoch */
export function lessonOf(
  served: readonly Served[],
  policies: readonly Policy[],
  start: number,
): string {
  if (served.length === 0) return 'The traffic has no request.'
  const refused = served.filter(({ decision }) => !decision.allowed)
  const first = refused.toSorted((one, other) => one.at - other.at)[0]
  const all = numberText(served.length)
  const asked = served[0]!.called ? 'calls' : 'requests'
  return [
    first
      ? `${numberText(refused.length)} of ${all} ${asked} were refused; the first at ${momentText(first.at - start)}, because ${reasonOf(first, policies)}.`
      : `All ${all} ${asked} were admitted.`,
    ...waitsOf(served),
    ...sharesOf(served),
    ...shadowsOf(served),
    ...(first ? mostOf(served, decisiveOf(served, policies)) : []),
  ].join(' ')
}

function reasonOf({ decision }: Served, policies: readonly Policy[]): string {
  const { reason, denied } = decision
  if (denied) return `${denied.by} denies it`
  const state = decision.limits.find(refuses)
  if (!state) return `the reason is ${reason}`
  const { policy, limit, remaining, cost, retryAfterMs, bannedForMs, unit } = state
  if (bannedForMs) return `${policy} has banned the client for ${waitText(bannedForMs)}`
  if (retryAfterMs === null) {
    return `it costs ${numberText(cost)}, and ${policy} never has more than ${numberText(limit)}`
  }
  if (unit === 'concurrent-requests') {
    return `${numberText(limit)} requests were in flight, which is the limit of ${policy}`
  }
  const { burst, windowMs } = policies.find(({ name }) => name === policy)!
  const costs = cost === 1 ? '' : `, and the request costs ${numberText(cost)}`
  if (burst === 1) {
    return `${policy} admits one request each ${durationText(windowMs / limit)}${costs}`
  }
  return `${policy} had ${numberText(remaining)} of ${numberText(limit)} left${costs}`
}

/** The requests that have waited for their turn. */
function waitsOf(served: readonly Served[]): string[] {
  const waits = served
    .filter(({ decision }) => decision.allowed)
    .map(({ at, arrival }) => at - arrival.at)
    .filter((ms) => ms > 0)
  if (waits.length === 0) return []
  return [
    `${numberText(waits.length)} waited for their turn, at most ${waitText(Math.max(...waits))}.`,
  ]
}

/** Who refused, if several policies did. */
function sharesOf(served: readonly Served[]): string[] {
  const all = refusers(served)
  if (all.length < 2) return []
  return [`${all.map(([name, count]) => `${name} refused ${numberText(count)}`).join(', ')}.`]
}

function shadowsOf(served: readonly Served[]): string[] {
  const names = served.flatMap(({ decision }) =>
    decision.limits.filter((one) => !one.allowed && one.mode === 'shadow').map((one) => one.policy),
  )
  return [...Map.groupBy(names, (name) => name)].map(
    ([name, list]) => `${name} in shadow would have refused ${numberText(list.length)}.`,
  )
}

/** False if a charge changes after the decision, by the response. */
export const isFinal = ({ cost, countOnly }: Policy): boolean =>
  !countOnly && !cost.usage && !cost.response

/** The most that a client got in a window, if all clients have one limit, and the charges of requests are final. */
function mostOf(served: readonly Served[], policy: Policy): string[] {
  const { name, algorithm, windowMs, limit, plan } = policy
  const most = mostWithin(served, windowMs, name)
  if (algorithm === 'concurrency' || plan || !isFinal(policy) || most === 0) return []
  const window = durationText(windowMs)
  return most > limit
    ? [`One client got ${numberText(most)} within ${window}, with a limit of ${numberText(limit)}.`]
    : [`No client got more than ${numberText(most)} within ${window}.`]
}
