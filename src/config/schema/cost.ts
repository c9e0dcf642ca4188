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
  /** The price of a matching request, in units. */
  cost: whole(0),
}

/** A cost for some requests. */
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
  pattern('a field name like "Sluice-Cost"', /^[\w!#$%&'*+.^`|~-]+$/),
  v.toLowerCase(),
)

const costFields = {
  /** A request header with the price, accepted from a trusted proxy only: on requests with a token of `SLUICE_PROXY_TOKEN` in `Sluice-Token`. */
  header: v.optional(fieldName),
  /**
   * A field of the origin's response with the price. The price by `rules` or `otherwise`, charged beforehand, is the most it can be;
   * the rest is refunded. Without the field nothing is refunded.
   */
  response: v.optional(fieldName),
  /** The first that matches. */
  rules: v.optional(rules, []),
  /** The price if no rule matches. Defaults to 1. */
  otherwise: v.optional(whole(0), 1),
}

/** The price of a request by what it is, or as a trusted proxy says. */
export interface CostOptions extends Input<typeof costFields>, Named {}

/** The price of a request, parsed: from the trusted proxy's `header`, else of the first rule that matches, else `otherwise`. */
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
