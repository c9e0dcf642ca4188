import * as v from 'valibot'
import { type Condition, conditionFields } from './condition.ts'
import {
  either,
  type Input,
  isObject,
  type Named,
  named,
  object,
  pattern,
  whole,
} from './shapes.ts'

const ruleFields = {
  ...conditionFields,
  /** Cost of a matching request: a whole number of units, 0 or more. Required. */
  cost: whole(0),
}

/** A cost for the requests that match a condition. */
export interface CostRule extends Input<typeof ruleFields>, Named {}

const rules = v.array(
  named<CostRule>()(
    v.pipe(
      object(ruleFields),
      v.transform(({ cost, ...condition }) => ({ condition: condition as Condition, cost })),
    ),
  ),
  'a list of rules',
)

const fieldName = v.pipe(
  pattern('a header name like "Sluice-Cost"', /^[\w!#$%&'*+.^`|~-]+$/),
  v.toLowerCase(),
)

const costFields = {
  /**
   * Name of a request header with the cost in units. It is accepted from trusted proxies only: requests with a token of
   * `SLUICE_PROXY_TOKEN` in `Sluice-Token`. Other requests cost what `rules` and `otherwise` say. Defaults to none.
   */
  header: v.optional(fieldName),
  /**
   * Name of a response header of the origin with the actual cost in units. The cost by `rules` or `otherwise` is charged first and is
   * the upper bound; the difference is refunded. Without the header nothing is refunded. Defaults to none.
   */
  response: v.optional(fieldName),
  /** Costs of some requests, as a list of conditions with a `cost`. The first rule that matches counts. Defaults to none. */
  rules: v.optional(rules, []),
  /** Cost of a request that no rule matches: a whole number of units, 0 or more. Defaults to 1. */
  otherwise: v.optional(whole(0), 1),
}

/** The cost of a request by rules, by a trusted proxy, or by the response of the origin. */
export interface CostOptions extends Input<typeof costFields>, Named {}

/** The parsed cost of a request: `header` of a trusted proxy, else the first rule that matches, else `otherwise`. */
export type Cost = v.InferOutput<typeof cost>

const fixed = { header: undefined, response: undefined, rules: [] }

export const cost = either(
  isObject,
  either(
    Array.isArray,
    v.pipe(
      whole(0),
      v.transform((otherwise) => ({ ...fixed, otherwise })),
    ),
    v.pipe(
      rules,
      v.transform((rules) => ({ ...fixed, rules, otherwise: 1 })),
    ),
  ),
  named<CostOptions>()(object(costFields)),
)
