import { sha256 } from '../../core/base/digest.ts'
import { MAX_UNITS } from '../../core/base/units.ts'
import type { Condition } from '../../core/config/schema/condition.ts'
import type { Cost } from '../../core/config/schema/cost.ts'
import { every, inAll, reached, textMatcher } from '../../core/program/condition.ts'
import type { Message } from '../../core/request/message.ts'
import { canonicalJson, textOf, UNREADABLE, valueAt } from './json.ts'

type BodyCondition = NonNullable<Condition['body']>

/** The units of a GraphQL request, from `query` and `variables` of its body. `undefined` without a document, such as for a persisted query. */
export type GraphqlCost = (request: { query?: unknown; variables?: unknown }) => number | undefined

/** Most pairs of a document and variables whose cost is computed. */
const MAX_READINGS = 16

const matchers = new WeakMap<object, ((text: string) => boolean)[]>()

function matchersOf(values: string[]) {
  const known = matchers.get(values) ?? values.map(textMatcher)
  matchers.set(values, known)
  return known
}

/**
 * @param value `UNREADABLE` for an unreadable body; `undefined` without a body
 * @param urlQuery the values of a parameter, in which some GraphQL servers find the document; `undefined` if it is unreadable
 */
export function messageOf(
  value: unknown,
  graphqlCost: GraphqlCost | undefined,
  urlQuery: ((name: string) => unknown[]) | undefined,
): Message {
  const at = (path: string) => (value === UNREADABLE ? value : valueAt(value, path))

  const meetsOne = ({ name, values }: BodyCondition[number]) => {
    const found = at(name)
    if (found === undefined) return false
    if (found === UNREADABLE) return undefined
    if (!values) return true
    const text = textOf(found)?.toLowerCase()
    const matches = (value: string) => matchersOf(values).some((matches) => matches(value))
    return text === undefined ? undefined : inAll([text], matches)
  }

  /** Servers take document and variables from the body or the URL, the first or the last of several. The most expensive pair counts. */
  const documentCost = (): number | undefined => {
    if (!urlQuery) return undefined
    const [inBody, bodyVariables] = [at('query'), at('variables')]
    const [inUrl, urlVariables] = [urlQuery('query'), urlQuery('variables')]
    const documents: unknown[] = [...(inBody === undefined ? [] : [inBody]), ...inUrl]
    const variables: unknown[] = [
      ...(inBody === undefined && bodyVariables === undefined ? [] : [bodyVariables]),
      ...(urlVariables.length > 0 ? urlVariables : inUrl.length > 0 ? [undefined] : []),
    ]
    if (documents.length * variables.length > MAX_READINGS) return undefined
    const costs = documents.flatMap((query) =>
      variables.map((one) => graphqlCost?.({ query, variables: one })),
    )
    return costs.length === 0 || costs.includes(undefined)
      ? undefined
      : Math.max(...(costs as number[]))
  }

  const ownCost = ({ body, graphql, max, otherwise }: Cost): number => {
    const most = max ?? MAX_UNITS
    const unusable = max ?? otherwise
    if (graphql) return Math.min(Math.ceil(documentCost() ?? unusable), most)
    const found = body === undefined ? value : at(body)
    if (found === UNREADABLE) return unusable
    if (body === undefined || found === undefined) return otherwise
    return typeof found === 'number' && found > 0 ? Math.min(Math.ceil(found), most) : unusable
  }

  return {
    read({ name, digest }, unreadable) {
      const found = at(name)
      if (!digest || found === undefined) {
        const text = textOf(found)
        return text === null ? unreadable : text
      }
      const text = found === UNREADABLE ? undefined : canonicalJson(found)
      return text === undefined ? unreadable : sha256(text)
    },
    meets: (condition) => every(condition, meetsOne),
    cost(all, cost, view) {
      const [rules, isDecided] = reached(all, view)
      return Math.max(...rules.map((rule) => rule.cost), ...(isDecided ? [] : [ownCost(cost)]))
    },
  }
}
