import * as v from 'valibot'
import { isObject } from '../../base/json.ts'
import { type Condition, conditionFields } from './condition.ts'
import {
  either,
  flag,
  type Input,
  list,
  type Named,
  named,
  type Output,
  object,
  pattern,
  whole,
} from './shapes.ts'

const ruleFields = () => ({
  ...conditionFields(),
  /** Cost of a matching request: a whole number of units, 0 or more. Required. */
  cost: whole(0),
})

/** A cost for the requests that match a condition. */
export interface CostRule extends Input<ReturnType<typeof ruleFields>>, Named {}

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

/** The paths in the body of a response, each with the units for each 1 of its number. */
export type Weights = [path: string, units: number][]

const usage = either(
  isObject,
  v.pipe(
    list(v.string('a path like "usage.total_tokens"')),
    v.transform((paths): Weights => paths.map((path) => [path, 1])),
  ),
  v.pipe(
    v.custom<Record<string, number>>(
      (input) =>
        Object.values(input as object).every(Number.isFinite) &&
        Object.values(input as object).some((units) => units > 0),
      'paths with their units, of which one is above 0, like { "usage.completion_tokens": 1 }',
    ),
    v.transform((input): Weights => Object.entries(input)),
  ),
)

const costFields = () => ({
  /**
   * Name of a request header with the cost in units, for trusted proxies only: requests with a token of `SLUICE_PROXY_TOKEN` in
   * `Sluice-Token`. Other requests cost what `rules` and `otherwise` say. Defaults to none.
   */
  header: v.optional(fieldName),
  /**
   * Name of a response header of the origin with the actual cost in units. The cost by `rules` or `otherwise` is charged first and is the
   * upper bound; the difference is refunded, and nothing without the header. Or `'bytes'`: the bytes of the body that were sent, also if the
   * client or the origin breaks it off; the difference is refunded or charged, up to `max`. `'bytes'` requires `bodies()`. Defaults to none.
   */
  response: v.optional(fieldName),
  /**
   * Path of the actual cost in the body of the response (JSON or server-sent events), such as `'usage.total_tokens'`; with a list, the sum. An
   * object has the units for each 1 of a number: `{ 'usage.prompt_tokens': 0.2, 'usage.completion_tokens': 1 }`. A weight may be negative; the
   * sum is rounded up, and at least 0. The cost by `rules` or `otherwise` is charged first; then the difference is refunded or charged, up to
   * `max`. Requires `bodies()`. Defaults to none.
   */
  usage: v.optional(usage),
  /**
   * Ends a stream of server-sent events when the quota is used up: the stream takes further units in chunks of `otherwise`, and counts one
   * unit for each event until its usage is known. Requires `usage`. Defaults to false.
   */
  cut: v.optional(flag, false),
  /**
   * Path of a number in the JSON body, such as `'max_tokens'`: the cost if no rule matches, rounded up. A value that is not a positive number,
   * or cannot be read, costs `max`. Requires `bodies()`. Defaults to none.
   */
  body: v.optional(v.string('the path of a field')),
  /** With true, `graphqlCost` of `bodies` is the cost if no rule matches. A document without a cost costs `max`. Defaults to none. */
  graphql: v.optional(v.literal(true, 'true')),
  /**
   * Highest cost, at least `otherwise`: of one message of a body and of a body that cannot be read, and of a response with `usage` or bytes.
   * Required with `usage`. Otherwise defaults to no bound, and to `otherwise` for a body that cannot be read.
   */
  max: v.optional(whole(1)),
  /** Costs of some requests, as a list of conditions with a `cost`. The first rule that matches counts. Defaults to none. */
  rules: v.optional(rules, []),
  /**
   * Cost of a request that no rule matches: a whole number of units, 0 or more. With `usage`, the units that a request reserves until its
   * usage is known. Defaults to 1, and with `usage` to `max`: then only as many requests start as the quota can finish.
   */
  otherwise: v.optional(whole(0)),
})

/** The cost of a request by rules, by a trusted proxy, or by the response of the origin. */
export interface CostOptions extends Input<ReturnType<typeof costFields>>, Named {}

/** The parsed cost of a request: `header` of a trusted proxy, else the first rule that matches, else `otherwise`. */
export type Cost = v.InferOutput<typeof cost>

type CostFields = Output<ReturnType<typeof costFields>>
const fixed = { rules: [] as CostFields['rules'] } as Omit<CostFields, 'otherwise'>

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
  named<CostOptions>()(
    v.pipe(
      object(costFields, ({ cut }, problem, { usage }) => {
        if (cut && usage === undefined) problem(['cut'], 'nothing without usage')
      }),
      v.transform(({ otherwise, ...rest }) => ({
        ...rest,
        otherwise: otherwise ?? ((rest.usage && rest.max) || 1),
      })),
    ),
  ),
)
