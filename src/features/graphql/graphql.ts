/** `sluice/graphql`: the cost of GraphQL documents. Needs the package `graphql`. */
import { parse } from 'graphql'
import * as v from 'valibot'
import { parsedOptions } from '../../core/config/schema/checked.ts'
import {
  type Input,
  list,
  type Named,
  named,
  object,
  whole,
} from '../../core/config/schema/shapes.ts'
import { parseStrict } from '../bodies/json.ts'
import type { GraphqlCost } from '../bodies/message.ts'
import { documentCost } from './cost.ts'

export type { GraphqlCost } from '../bodies/message.ts'

const factor = v.custom<number>(
  (input) => typeof input === 'number' && input >= 1 && input <= 100,
  'a number from 1 to 100',
)

const fields = () => ({
  /** Units for each field. An alias is a field, and the fields of a fragment count wherever it is used. A whole number, 0 or more. Defaults to 1. */
  field: v.optional(whole(0, 1_000_000), 1),
  /** A field costs this times as much as its parent: a number from 1 to 100. Defaults to 1. */
  depthFactor: v.optional(factor, 1),
  /** Names of arguments that limit a list: the fields below cost their value times as much. Defaults to `['first', 'last', 'limit']`. */
  lists: v.optional(list(v.string('the name of an argument'), 0), ['first', 'last', 'limit']),
  /** Size of a list whose argument has no usable value, such as `null`, or -1, which some servers read as all: a whole number, at least 1. Defaults to 100. */
  listSize: v.optional(whole(1, 1_000_000), 100),
  /** Deepest nesting of fields. A deeper document has no cost, so that it costs `max`. A whole number, at least 1. Defaults to 15. */
  maxDepth: v.optional(whole(1, 1000), 15),
  /** Most fields, with those of fragments. A document with more has no cost, so that it costs `max`. A whole number, at least 1. Defaults to 1000. */
  maxFields: v.optional(whole(1, 1_000_000), 1000),
})

/** Options of `graphqlCost`. */
export interface GraphqlCostOptions extends Input<ReturnType<typeof fields>>, Named {}
const schema = named<GraphqlCostOptions>()(object(fields))

/** Longest document, in tokens of GraphQL. */
const MAX_TOKENS = 10_000

/**
 * Makes the option `graphql` of `bodies()`: computes the cost of a GraphQL document by its fields, their depth and the sizes of lists. Of
 * several operations the most expensive one counts.
 * @throws {ConfigError} immediately, if the options are invalid
 * @example
 * bodies({ graphql: graphqlCost({ depthFactor: 2 }) })
 */
export function graphqlCost(options: GraphqlCostOptions = {}): GraphqlCost {
  const terms = parsedOptions(schema, options, 'graphqlCost')
  return ({ query, variables }) => {
    if (typeof query !== 'string') return undefined // a persisted query
    try {
      const document = parse(query, { noLocation: true, maxTokens: MAX_TOKENS })
      // Some servers also accept the variables as a text.
      const given = typeof variables === 'string' ? parseStrict(variables) : variables
      return documentCost(document, given, terms)
    } catch {
      return undefined // a syntax error, or nesting that is too deep for the stack
    }
  }
}
