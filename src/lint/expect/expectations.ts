/** Checks the expectations of a configuration for every request and every time. */
import { spanText } from '../../core/base/duration.ts'
import type { Config } from '../../core/config/parse.ts'
import { covers } from '../covers.ts'
import { type Facts, type Found, largestLimit } from '../facts.ts'
import { type Bound, boundOf, type Most, mostBySeveral, mostBySingle } from './bound.ts'
import { type Example, findExample } from './counterexample.ts'
import { type Expectation, expectationsOf } from './options.ts'
import { describe } from './sample.ts'
import { gapsText, noBoundText, titleOf } from './text.ts'
import { mostUnits } from './units.ts'

/** An expectation that holds, and the policies that bound its requests: none if `deny` refuses all of them. */
export interface HeldExpectation extends Most {
  at: string
  expectation: Expectation
}

export type CheckedExpectation =
  | { held: HeldExpectation; found?: undefined }
  | { held?: undefined; found: Found }

export function checkExpectations({ config, written }: Facts): CheckedExpectation[] {
  const { output = [] } = expectationsOf(written)
  const isList = Array.isArray(written.expect)
  return output.map((expectation, index) =>
    checkOne(expectation, isList ? `expect[${index}]` : 'expect', config),
  )
}

function checkOne(expectation: Expectation, at: string, config: Config): CheckedExpectation {
  const { request, atMost, inMs } = expectation
  const isDenied = config.deny.some(({ condition }) => covers(condition, request))
  const single = isDenied ? { requests: 0, policies: [] } : mostBySingle(expectation, config)
  if (single.requests <= atMost) return { held: { at, expectation, ...single } }
  const finding = (message: string, hint: string): CheckedExpectation => ({
    found: {
      path: at,
      message: `${titleOf(expectation)}: expected at most ${atMost} in ${spanText(inMs)}, and ${message}.`,
      hint,
    },
  })
  const example = findExample(expectation, config)
  if (!example) {
    const most = mostBySeveral(expectation, config)
    if (most.requests <= atMost) return { held: { at, expectation, ...most } }
    const bounds = config.policies.map((policy) => boundOf(policy, expectation, config))
    return most.requests < Number.POSITIVE_INFINITY
      ? finding(`${namesOf(most)} may admit ${most.requests} together`, sumHint(most))
      : finding(
          `nothing proves it: ${gapsText(bounds)}`,
          'Narrow request, or write an expectation for the requests of each policy.',
        )
  }
  const which = describe(example.sample, [...new Set(lackingIn(example))])
  const [tightest] = example.bounds
    .filter((one) => one.gap === undefined)
    .sort((one, other) => one.requests - other.requests)
  return tightest
    ? finding(
        `${worstCase(tightest)} (${which})${noBoundText(example.bounds)}`,
        sizeHint(tightest, expectation),
      )
    : finding(`any number passes: for ${which}, ${gapsText(example.bounds)}`, gapHint(example))
}

type Tightest = Pick<Extract<Bound, { gap?: undefined }>, 'policy' | 'requests'>

const namesOf = ({ policies }: Most) => policies.map(({ name }) => `"${name}"`).join(' and ')

/** The headers without which a request passes policies. */
const lackingIn = ({ bounds }: Example) =>
  bounds.flatMap(({ policy, gap }) => {
    if (gap?.why === 'skip') return gap.part.source === 'header' ? [gap.part.name] : []
    if (gap?.why !== 'match' || gap.field !== 'header') return []
    return (policy.match.header ?? []).map(({ name }) => name)
  })

const sumHint = ({ requests }: Most) =>
  `Set atMost to ${requests}, or add a policy that applies to all of these requests.`

/** What a client does to reach the bound of a policy. */
function worstCase({ policy, requests }: Tightest): string {
  const { name, algorithm, calendar, limit } = policy
  const isLarger = largestLimit(policy) > limit
  const title = `"${name}" admits ${requests}${isLarger ? ' under its largest limit' : ''}`
  switch (algorithm) {
    case 'fixed-window':
      return `${title}: a whole limit at the end of a ${calendar?.unit ?? 'window'}, and another at the start of the next`
    case 'sliding-window':
      return `${title}: a whole limit at the end of a window, and what comes back in the next`
    case 'token-bucket':
      return `${title}: a whole burst, and what flows back meanwhile`
    default:
      return title
  }
}

/** The largest limit with which the policy keeps the expectation. */
function sizeHint({ policy, requests }: Tightest, { atMost, inMs }: Expectation): string {
  const units = mostUnits(policy, inMs)
  const scale = Math.ceil(requests / Math.max(1, units)) // counters, or a cost above 1
  const fits = (limit: number) =>
    scale * mostUnits({ ...policy, limit, burst: Math.min(policy.burst, limit) }, inMs) <= atMost
  let [low, high] = [0, policy.limit]
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (fits(middle)) low = middle
    else high = middle - 1
  }
  const raise = `Set atMost to ${requests}`
  return low === 0
    ? `${raise}, or add a stricter policy.`
    : `${raise}, or lower the limit of "${policy.name}" to ${low}.`
}

function gapHint({ bounds }: Example): string {
  const gap = bounds.find(({ gap }) => gap && gap.why !== 'match')?.gap ?? bounds[0]?.gap
  switch (gap?.why) {
    case 'allow':
      return 'Narrow the entry of allow. If it is intended, exclude its requests from the expectation: request: { not: … }.'
    case 'skip':
      return "Set onMissingKey to 'share' or 'refuse', or add a policy for these requests."
    case 'key':
      return 'Add a policy for these requests whose key is what the expectation counts by (per).'
    case 'response':
      return `Add a policy without ${gap.field} for these requests: a response that does not count returns its unit.`
    default:
      return 'Add a policy for these requests, or narrow request of the expectation.'
  }
}

export const failedExpectations = (facts: Facts): Found[] =>
  checkExpectations(facts).flatMap(({ found }) => found ?? [])
