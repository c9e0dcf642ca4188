/** Searches a request of which more may pass than an expectation allows. Decides each request with the deployed conditions. */
import type { Config, Policy } from '../../core/config/parse.ts'
import type { Condition } from '../../core/config/schema/condition.ts'
import { compileCondition, compileRules, reached } from '../../core/program/condition.ts'
import type { RequestView } from '../../core/request/view.ts'
import { type Bound, boundBy, ownCost } from './bound.ts'
import type { Expectation } from './options.ts'
import {
  changesFor,
  changesForPart,
  hasPart,
  plainSample,
  type SampleRequest,
  usualChanges,
  viewOf,
} from './sample.ts'

export interface Example {
  sample: SampleRequest
  bounds: Bound[]
}

/** @returns undefined if there is no such request, or none is found */
export function findExample(expectation: Expectation, config: Config): Example | undefined {
  const judge = compileJudge(expectation, config)
  const { allow, deny, policies } = config
  const conditions = [
    expectation.request,
    ...[...allow, ...deny].map(({ condition }) => condition),
    ...policies.flatMap(({ match, cost }) => [match, ...cost.rules.map((rule) => rule.condition)]),
  ]
  const changes = [
    ...usualChanges,
    ...conditions.flatMap(changesFor),
    ...policies.flatMap(({ key }) => key.flatMap(changesForPart)),
  ]
  let best = judge(plainSample)
  for (let before = Number.POSITIVE_INFINITY; best.score > 0 && best.score < before; ) {
    before = best.score
    for (const change of changes) {
      const found = judge(change(best.example.sample))
      if (found.score < best.score) best = found
    }
  }
  return best.score === 0 ? best.example : undefined
}

/** Makes a function that says how far a request is from a counterexample: 0 for one. */
function compileJudge(expectation: Expectation, config: Config) {
  const { request, atMost } = expectation
  const inScope = compileCondition(request, config)
  const own = Object.entries(request).map(([name, value]) =>
    compileCondition({ [name]: value }, config),
  )
  const matches = ({ condition }: { condition: Condition }) => compileCondition(condition, config)
  const denies = config.deny.map(matches)
  const entries = config.allow.map((entry) => ({ ...entry, mismatch: matches(entry) }))
  const bounds = config.policies.map((policy) => compileBound(policy, expectation, config, entries))
  const far = config.policies.length + 1

  return (sample: SampleRequest): { score: number; example: Example } => {
    const view = viewOf(sample, config)
    const found = bounds.map((bound) => bound(sample, view))
    const refused = found.includes('refused') || denies.some((mismatch) => !mismatch(view))
    const applied = found.filter((one) => one !== 'refused')
    const binding = applied.filter((one) => !one.gap && one.requests <= atMost)
    const outside =
      inScope(view) === undefined ? 0 : 1 + own.filter((mismatch) => mismatch(view)).length
    return {
      score: binding.length + (refused ? far : 0) + outside * far,
      example: { sample, bounds: applied },
    }
  }
}

/** What a policy does to one request: its bound, or `'refused'` for a request without the key. */
function compileBound(
  policy: Policy,
  expectation: Expectation,
  config: Config,
  allow: (Config['allow'][number] & { mismatch: ReturnType<typeof compileCondition> })[],
) {
  const { match, key, onMissingKey, cost, mode, name } = policy
  // A sample has no body, which stands for another body than that of a condition.
  const { body, ...others } = match
  const mismatch = compileCondition(others, config)
  const needsBody = body !== undefined && expectation.request.body === undefined
  const rules = compileRules(cost.rules, config)
  const entries = allow.filter(({ policies = [name] }) => policies.includes(name))

  return (sample: SampleRequest, view: RequestView): Bound | 'refused' => {
    const field = needsBody ? 'body' : mismatch(view)
    if (field) return { policy, gap: { why: 'match', field } }
    const entry = entries.find((one) => !one.mismatch(view))
    if (entry) return { policy, gap: { why: 'allow', entry: entry.name } }
    const missing = key.find((part) => !hasPart(sample, part))
    if (missing && onMissingKey === 'skip') return { policy, gap: { why: 'skip', part: missing } }
    if (missing && onMissingKey === 'refuse' && mode === 'enforce') return 'refused'
    const used = missing && typeof onMissingKey === 'object' ? onMissingKey.key : key
    const [prices, isDecided] = reached(rules, view)
    const own = isDecided ? [] : [ownCost(cost)]
    const least = Math.max(...prices.map((rule) => rule.cost), ...own)
    return boundBy(policy, expectation, [used], least)
  }
}
