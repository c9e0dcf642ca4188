import { type CheckedConfig, checkPolicies } from '../../core/config/feature.ts'
import type { Policy } from '../../core/config/parse.ts'
import { usesBody } from '../../core/config/schema/reads.ts'
import type { AddProblem } from '../../core/config/schema/shapes.ts'

/** Reports settings that do not work, although the configuration has `bodies()`. */
export function checkBodies(config: CheckedConfig, hasGraphql: boolean, problem: AddProblem) {
  checkPolicies(config, problem, ({ cost, ...rest }, report) => {
    for (const field of WITH_PATHS) {
      for (const path of pathsIn({ ...rest, cost }[field]).filter((path) => OTHER.test(path))) {
        report([field], `paths like "params.name" and "messages.0.role", not "${path}"`)
      }
    }
    if (!cost) return
    if (cost.response === 'bytes' && cost.otherwise < 1) {
      report(['cost', 'otherwise'], 'at least 1 with bytes')
    }
    checkUsage(cost, rest, (field, expected) => report(field.split('.'), expected))
    const { body, graphql, max, otherwise } = cost
    if (body && graphql) report(['cost', 'body'], 'no value (graphql sets the cost)')
    if (graphql && !hasGraphql) {
      const missing = "true only with bodies({ graphql: graphqlCost() }), from 'sluice/graphql'"
      report(['cost', 'graphql'], missing)
    }
    if (max !== undefined && max < otherwise) {
      report(['cost', 'max'], `at least ${otherwise}, which a request costs otherwise`)
    }
  })
  const { allow = [], deny = [], shield } = config
  for (const [list, entries] of Object.entries({ allow, deny })) {
    entries.forEach((entry, index) => {
      if (usesBody(entry)) problem([list, index], 'no body (only policies can match a body)')
    })
  }
  if (usesBody(shield)) problem(['shield', 'key'], 'no part of the body')
}

const WITH_PATHS = ['key', 'onMissingKey', 'plan', 'match', 'cost', 'reserve'] as const

/** Matches JSONPath, JSON Pointer and other notations: such a path has no value, so that its policy would not apply. */
const OTHER = /^$|\s|^\$[.[]|^body:|^[./]|\.$|\.\.|\[/

/** Finds the paths of the body in parsed keys, conditions and costs. */
function pathsIn(parsed: unknown): string[] {
  if (Object(parsed) !== parsed) return []
  const { source, name, body, ...rest } = parsed as Record<string, unknown>
  const named = Array.isArray(body) ? body.map((one) => Object(one).name) : [body]
  return [...(source === 'body' ? [name] : []), ...named]
    .filter((path) => typeof path === 'string')
    .concat(Object.values(rest).flatMap(pathsIn))
}

const PATH = /^(?!\$\.)[\w$-]+(\.[\w$-]+)*$/

function checkUsage(
  { usage, response, max, otherwise }: Policy['cost'],
  { algorithm, lease }: Partial<Policy>,
  problem: (field: string, expected: string) => void,
) {
  // With a problem of its own, it is as written.
  if (!Array.isArray(usage) || !usage.every(Array.isArray)) return
  usage.forEach(([path], index) => {
    if (!PATH.test(path)) problem(`cost.usage.${index}`, 'a path like "usage.total_tokens"')
  })
  if (response) problem('cost.response', 'no value (usage sets the cost)')
  if (otherwise < 1) problem('cost.otherwise', 'at least 1 with usage')
  if (max === undefined) problem('cost.max', 'the highest cost of a response, because usage is set')
  if (algorithm === 'concurrency') problem('cost.usage', 'no value (a slot has no cost)')
  if (lease) problem('lease', 'no value (the cost is known only after the response)')
}
