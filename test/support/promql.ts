/**
 * A strict parser of the part of PromQL that examples/ uses (https://prometheus.io/docs/prometheus/latest/querying/basics/). It checks the
 * syntax and the types, and finds the metrics and labels that an expression names. Variables of Grafana may stand for durations and
 * inside texts.
 */

export interface Selector {
  metric: string
  /** The labels that its matchers name. */
  labels: string[]
}

export interface Expression {
  type: 'scalar' | 'vector' | 'range'
  selectors: Selector[]
  /** The labels in `by`, `without`, `on`, `ignoring` and `group_left`, with the selectors that they refer to. */
  groupings: { labels: string[]; selectors: Selector[] }[]
}

const TOKEN =
  /\s+|#.*|(?<duration>(?:\d+(?:ms|[smhdwy]))+|\$__rate_interval|\$__interval|\$__range)|(?<number>\d+\.?\d*(?:e[+-]?\d+)?|\.\d+)|(?<name>[a-zA-Z_:][a-zA-Z0-9_:]*)|(?<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|(?<sign>=~|!~|!=|==|<=|>=|[-+*/%^<>=(){}[\],])/gy

interface Token {
  kind: 'duration' | 'number' | 'name' | 'text' | 'sign' | 'end'
  text: string
}

function tokensOf(source: string): Token[] {
  const tokens: Token[] = []
  TOKEN.lastIndex = 0
  while (TOKEN.lastIndex < source.length) {
    const at = TOKEN.lastIndex
    const match = TOKEN.exec(source)
    if (!match) throw new Error(`unexpected ${source.slice(at, at + 20)} in ${source}`)
    const [kind, text] =
      Object.entries(match.groups!).find(([, value]) => value !== undefined) ?? []
    if (kind) tokens.push({ kind: kind as Token['kind'], text: text! })
  }
  return [...tokens, { kind: 'end', text: 'the end' }]
}

/** Binary operators, the weakest first. */
const LEVELS = [
  ['or'],
  ['and', 'unless'],
  ['==', '!=', '<=', '<', '>=', '>'],
  ['+', '-'],
  ['*', '/', '%'],
  ['^'],
]
const SETS = ['or', 'and', 'unless']
const AGGREGATIONS = ['sum', 'min', 'max', 'avg', 'count', 'topk', 'bottomk', 'quantile']
const WITH_PARAMETER = ['topk', 'bottomk', 'quantile']

/** The types of the parameters and of the result. */
const FUNCTIONS: Record<string, [...Expression['type'][], Expression['type']]> = {
  rate: ['range', 'vector'],
  increase: ['range', 'vector'],
  histogram_quantile: ['scalar', 'vector', 'vector'],
  vector: ['scalar', 'vector'],
  absent: ['vector', 'vector'],
}

/** @throws {Error} names what is wrong */
export function parsePromql(source: string): Expression {
  const tokens = tokensOf(source)
  const fail = (expected: string): never => {
    throw new Error(`expected ${expected}, got ${tokens[0]!.text} in ${source}`)
  }
  const isNext = (...texts: string[]) =>
    ['name', 'sign'].includes(tokens[0]!.kind) && texts.includes(tokens[0]!.text)
  const take = (kind: Token['kind'], text?: string): string =>
    tokens[0]!.kind === kind && (text ?? tokens[0]!.text) === tokens[0]!.text
      ? tokens.shift()!.text
      : fail(text ?? `a ${kind}`)
  const skip = (text: string) => isNext(text) && Boolean(tokens.shift())

  function labels(): string[] {
    const names: string[] = []
    take('sign', '(')
    while (!isNext(')')) {
      names.push(take('name'))
      if (!isNext(')')) take('sign', ',')
    }
    take('sign', ')')
    return names
  }

  const joined = (type: Expression['type'], ...parts: Expression[]): Expression => ({
    type,
    selectors: parts.flatMap(({ selectors }) => selectors),
    groupings: parts.flatMap(({ groupings }) => groupings),
  })
  const expect = (part: Expression, type: Expression['type']) => {
    if (part.type !== type) throw new Error(`a ${part.type} instead of a ${type} in ${source}`)
  }

  function binary(level: number): Expression {
    if (level === LEVELS.length) return unary()
    let left = binary(level + 1)
    while (isNext(...LEVELS[level]!)) {
      const operator = tokens.shift()!.text
      const isBool = skip('bool')
      const matched = ['on', 'ignoring', 'group_left', 'group_right'].flatMap((word) =>
        skip(word) ? labels() : [],
      )
      const right = binary(level + 1)
      for (const part of [left, right]) if (part.type === 'range') expect(part, 'vector')
      if (SETS.includes(operator)) for (const part of [left, right]) expect(part, 'vector')
      const type = left.type === 'scalar' && right.type === 'scalar' ? 'scalar' : 'vector'
      if (LEVELS[2]!.includes(operator) && type === 'scalar' && !isBool) fail('bool')
      left = joined(type, left, right)
      if (matched.length > 0) left.groupings.push({ labels: matched, selectors: left.selectors })
    }
    return left
  }

  function unary(): Expression {
    if (skip('-') || skip('+')) return unary()
    if (tokens[0]!.kind === 'number') {
      tokens.shift()
      return joined('scalar')
    }
    if (skip('(')) {
      const inner = binary(0)
      take('sign', ')')
      return inner
    }
    const name = take('name')
    if (AGGREGATIONS.includes(name)) return aggregation(name)
    return isNext('(') ? call(name) : selector(name)
  }

  function aggregation(name: string): Expression {
    const grouping = () => (skip('by') || skip('without') ? labels() : undefined)
    const before = grouping()
    const parts = parameters()
    const types: Expression['type'][] = WITH_PARAMETER.includes(name)
      ? ['scalar', 'vector']
      : ['vector']
    if (parts.length !== types.length) throw new Error(`the parameters of ${name} in ${source}`)
    for (const [index, part] of parts.entries()) expect(part, types[index]!)
    const by = before ?? grouping()
    const result = joined('vector', ...parts)
    if (by) result.groupings.push({ labels: by, selectors: result.selectors })
    return result
  }

  function call(name: string): Expression {
    const types = FUNCTIONS[name]
    if (!types) throw new Error(`an unknown function ${name} in ${source}`)
    const parts = parameters()
    if (parts.length !== types.length - 1) throw new Error(`the parameters of ${name} in ${source}`)
    for (const [index, part] of parts.entries()) expect(part, types[index]!)
    return joined(types.at(-1)!, ...parts)
  }

  function parameters(): Expression[] {
    const parts: Expression[] = []
    take('sign', '(')
    do parts.push(binary(0))
    while (skip(','))
    take('sign', ')')
    return parts
  }

  function selector(metric: string): Expression {
    const matched: string[] = []
    if (skip('{')) {
      while (!isNext('}')) {
        matched.push(take('name'))
        if (!isNext('=', '!=', '=~', '!~')) fail('=, !=, =~ or !~')
        const operator = tokens.shift()!.text
        const value = take('text').slice(1, -1)
        if (operator.endsWith('~')) new RegExp(value.replace(/\$\w+/g, ''))
        if (!isNext('}')) take('sign', ',')
      }
      take('sign', '}')
    }
    let type: Expression['type'] = 'vector'
    if (skip('[')) {
      take('duration')
      take('sign', ']')
      type = 'range'
    }
    if (skip('offset')) take('duration')
    return { type, selectors: [{ metric, labels: matched }], groupings: [] }
  }

  const parsed = binary(0)
  if (tokens[0]!.kind !== 'end') fail('the end')
  return parsed
}
