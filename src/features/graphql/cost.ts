import type {
  DefinitionNode,
  DocumentNode,
  FieldNode,
  FragmentDefinitionNode,
  SelectionNode,
  SelectionSetNode,
  ValueNode,
} from 'graphql'

export interface CostTerms {
  field: number
  depthFactor: number
  lists: string[]
  listSize: number
  maxDepth: number
  maxFields: number
}

/** A selection of a document, as if it were at the top level. */
interface Selected {
  fields: number
  depth: number
  cost: number
}

const NOTHING: Selected = { fields: 0, depth: 0, cost: 0 }

/** The cost of the most expensive operation. Undefined if a fragment is missing or contains itself, or a limit is exceeded. */
export function documentCost(
  { definitions }: DocumentNode,
  variables: unknown,
  { field, depthFactor, lists, listSize, maxDepth, maxFields }: CostTerms,
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
  for (const one of definitions) {
    for (const { variable, defaultValue } of variablesOf(one)) {
      const { value: name } = variable.name
      const isInt = defaultValue?.kind === 'IntValue'
      if (!isInt && defaultValue?.kind !== 'StringValue' && defaultValue?.kind !== 'FloatValue')
        continue
      const size = sizeIn(isInt ? Number(defaultValue.value) : defaultValue.value)
      defaults.set(name, Math.max(size, defaults.get(name) ?? 0))
    }
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
      if (fields > maxFields || deepest > maxDepth) return undefined
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

  const numberOf = (value: ValueNode): number => {
    if (value.kind === 'IntValue') return sizeIn(Number(value.value))
    if (value.kind === 'StringValue' || value.kind === 'FloatValue') return sizeIn(value.value)
    if (value.kind !== 'Variable') return listSize
    const given = variableOf(variables, value.name.value)
    // An explicit null overrides the default (GraphQL specification, 6.4.1).
    return given === undefined ? (defaults.get(value.name.value) ?? listSize) : sizeIn(given)
  }

  const costs = definitions.flatMap((one) =>
    one.kind === 'OperationDefinition' ? [partOf(one.selectionSet, 1)?.cost] : [],
  )
  if (costs.length === 0 || costs.includes(undefined)) return undefined
  const cost = Math.max(...(costs as number[]))
  return Number.isFinite(cost) ? cost : undefined
}

const variablesOf = (definition: DefinitionNode) =>
  (definition.kind === 'OperationDefinition' && definition.variableDefinitions) || []

const variableOf = (variables: unknown, name: string): unknown =>
  Object(variables) === variables && Object.hasOwn(variables as object, name)
    ? (variables as Record<string, unknown>)[name]
    : undefined
