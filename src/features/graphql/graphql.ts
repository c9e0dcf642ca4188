/** `sluice/graphql`: the cost of GraphQL documents. Needs the package `graphql`. */
import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  parse,
  type SelectionNode,
  type SelectionSetNode,
  type ValueNode,
} from 'graphql'
import * as v from 'valibot'
import { parsedOptions } from '../../core/config/schema/checked.ts'
import { type Input, list, type Named, object, whole } from '../../core/config/schema/shapes.ts'
import { memberOf, parseStrict } from '../bodies/json.ts'
import type { GraphqlCost } from '../bodies/message.ts'

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
})

/** Options of `graphqlCost`. */
export interface GraphqlCostOptions extends Input<ReturnType<typeof fields>>, Named {}
const schema = object(fields)

/** Longest document, in tokens of GraphQL. */
const MAX_TOKENS = 10_000
/** Most fields, with those of fragments. A document with more has no cost, so that it costs `max`. */
const MAX_FIELDS = 1000

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

/** A selection of a document, as if it were at the top level. */
interface Selected {
  fields: number
  depth: number
  cost: number
}

const NOTHING: Selected = { fields: 0, depth: 0, cost: 0 }

/** The cost of the most expensive operation. Undefined if a fragment is missing or contains itself, or a limit is exceeded. */
function documentCost(
  { definitions }: DocumentNode,
  variables: unknown,
  { field, depthFactor, lists, listSize, maxDepth }: v.InferOutput<typeof schema>,
): number | undefined {
  const fragments = new Map<string, FragmentDefinitionNode>()
  for (const one of definitions) {
    if (one.kind !== 'FragmentDefinition') continue
    if (fragments.has(one.name.value)) return undefined // servers may differ in which one they use
    fragments.set(one.name.value, one)
  }
  /** The size of a list by the value of its argument. Some servers read a negative one as all, and some a text as its number. */
  const sizeIn = (value: unknown): number => {
    if (typeof value === 'number' && value >= 0) return value
    return typeof value === 'string' ? Math.max(listSize, Number(value) || 0) : listSize
  }

  /** The sizes by the defaults of variables. If operations differ, the largest counts. */
  const defaults = new Map<string, number>()
  const operations = definitions.filter((one) => one.kind === 'OperationDefinition')
  for (const one of operations.flatMap(({ variableDefinitions = [] }) => variableDefinitions)) {
    const { value: name } = one.variable.name
    const value = one.defaultValue
    if (!value || !/^(Int|Float|String)Value$/.test(value.kind)) continue
    defaults.set(name, Math.max(numberOf(value), defaults.get(name) ?? 0))
  }
  /** The parts of fragments. `undefined` while a fragment is computed, to find cycles. Each is computed once, so that the time is linear. */
  const known = new Map<string, Selected | undefined>()

  const partOf = ({ selections }: SelectionSetNode, depth: number): Selected | undefined => {
    if (depth > maxDepth) return undefined
    let { fields, depth: deepest, cost } = NOTHING
    for (const selection of selections) {
      const part = selected(selection, depth)
      if (!part) return undefined
      fields += part.fields
      deepest = Math.max(deepest, part.depth)
      cost += part.cost
      if (fields > MAX_FIELDS || deepest > maxDepth) return undefined
    }
    return { fields, depth: deepest, cost }
  }

  const selected = (selection: SelectionNode, depth: number): Selected | undefined => {
    if (selection.kind === 'FragmentSpread') return fragmentPart(selection.name.value)
    if (selection.kind === 'InlineFragment') return partOf(selection.selectionSet, depth)
    const below = selection.selectionSet ? partOf(selection.selectionSet, depth + 1) : NOTHING
    if (!below) return undefined
    return {
      fields: below.fields + 1,
      depth: below.depth + 1,
      cost: field + below.cost * depthFactor * sizeOf(selection),
    }
  }

  const fragmentPart = (name: string): Selected | undefined => {
    if (known.has(name)) return known.get(name)
    known.set(name, undefined)
    const fragment = fragments.get(name)
    const part = fragment && partOf(fragment.selectionSet, 1)
    known.set(name, part)
    return part
  }

  /** The most items of the list that a field returns, as its arguments say; 1 without such an argument. */
  const sizeOf = (node: FieldNode) =>
    Math.max(
      1,
      ...(node.arguments ?? [])
        .filter(({ name }) => lists.includes(name.value))
        .map(({ value }) => numberOf(value)),
    )

  function numberOf(value: ValueNode): number {
    if (value.kind === 'IntValue') return sizeIn(Number(value.value))
    if (value.kind === 'StringValue' || value.kind === 'FloatValue') return sizeIn(value.value)
    if (value.kind !== 'Variable') return listSize
    const given = memberOf(variables, value.name.value)
    // An explicit null overrides the default (GraphQL specification, 6.4.1).
    return given === undefined ? (defaults.get(value.name.value) ?? listSize) : sizeIn(given)
  }

  const costs = operations.map((one) => partOf(one.selectionSet, 1)?.cost)
  if (costs.length === 0 || costs.includes(undefined)) return undefined
  const cost = Math.max(...(costs as number[]))
  return Number.isFinite(cost) ? cost : undefined
}
