import { inNetworks } from '../base/ip.ts'
import type { Condition } from '../config/schema/condition.ts'
import { CREDENTIALS } from '../config/schema/reads.ts'
import { trimmed } from '../request/fold.ts'
import type { CompiledRule } from '../request/message.ts'
import { pathMatcher, pathOf } from '../request/path.ts'
import { headerValues, queryValues } from '../request/values.ts'
import type { Cased, RequestView } from '../request/view.ts'

/** The first field of a condition that a request does not match; `undefined` if it matches all. */
export type Mismatch = keyof Condition | undefined

/** The result of a comparison. `undefined` if it is unknown: origins may read the request in several ways, or a part cannot be read. */
type Comparison = boolean | undefined

/**
 * Compiles a condition into comparisons, the cheap ones first.
 * @param unknown the result of a comparison that is unknown: true where a match is strictest for the client, so that no repeated parameter or
 * unreadable body evades a policy; for `not` the opposite
 */
export function compileCondition(condition: Condition, options: Cased, unknown = true) {
  const { method, host, path, country, asn, verifiedBot, botScore, ja4, ip, not, body } = condition
  const tests: [keyof Condition, (view: RequestView) => Comparison][] = []
  const add = (field: keyof Condition, test: (view: RequestView) => Comparison) =>
    tests.push([field, test])

  if (method) add('method', (view) => method.includes(view.method))
  if (host) add('host', (view) => host.some((name) => hostMatches(name, view.host)))
  if (country) add('country', (view) => country.includes(view.country ?? 'XX'))
  if (asn) add('asn', (view) => asn.includes(Number(view.asn)))
  if (verifiedBot !== undefined) add('verifiedBot', (view) => isBot(view.verifiedBot, verifiedBot))
  if (botScore) {
    const { atLeast = 1, below = 100 } = botScore
    add('botScore', ({ botScore: score = 0 }) => score >= atLeast && score < below)
  }
  if (ja4) {
    const matches = anyMatcher(ja4)
    add('ja4', ({ ja4: fingerprint = '' }) => matches(fingerprint)) // no pattern matches an empty text
  }
  if (path) {
    const matchers = path.map((pattern) => pathMatcher(pattern, options.caseSensitivePaths))
    add('path', (view) => {
      if (view.omitted?.includes('path')) return undefined
      const sent = pathOf(view)
      return matchers.some((matches) => matches(sent))
    })
  }
  const addNamed = (
    field: 'header' | 'query',
    compare: (view: RequestView, name: string, matches: Matches) => Comparison,
  ) => {
    const all = condition[field]?.map(({ name, values }) => ({ name, matches: anyMatcher(values) }))
    if (all) add(field, (view) => every(all, ({ name, matches }) => compare(view, name, matches)))
  }
  addNamed('header', ({ request, omitted }, name, matches) => {
    const [values, isOne] = headerValues(request.headers, name)
    if (values.length === 0 && omitted?.includes('headers')) return undefined
    const [whole] = values
    return isOne && whole !== undefined && matches(whole) ? true : inAll(values, matches)
  })
  addNamed('query', (view, name, matches) =>
    view.omitted?.includes('query')
      ? undefined
      : inAll([...queryValues(view, name), ...joined(view, name)], matches),
  )
  if (ip) {
    const includes = inNetworks(ip)
    add('ip', ({ address }) => address !== undefined && includes(address))
  }
  for (const field of CREDENTIALS) {
    const wanted = condition[field]
    if (wanted !== undefined)
      add(field, ({ [field]: has }) => (has === undefined ? has : has === wanted))
  }
  if (not) {
    const others = not.map((condition) => compileCondition(condition, options, !unknown))
    add('not', (view) => others.every((mismatch) => mismatch(view) !== undefined))
  }
  if (body) add('body', ({ message }) => message?.meets(body))
  return (view: RequestView): Mismatch => {
    for (const [field, test] of tests) if (!(test(view) ?? unknown)) return field
    return undefined
  }
}

/** True if all comparisons are true, false if one is false. */
export function every<One>(all: One[], compare: (one: One) => Comparison): Comparison {
  let result: Comparison = true
  for (const one of all) {
    const known = compare(one)
    if (known === false) return false
    if (known === undefined) result = undefined
  }
  return result
}

/** All values of a repeated parameter as a text, as ASP.NET reads them, and Express if it makes a text of a list. */
function joined({ query }: RequestView, name: string): string[] {
  const values = query.getAll(name)
  return new Set(values).size > 1 ? [values.join(',')] : []
}

type Matches = (value: string) => boolean

/** True if all values match as they are and without white space at their ends, which many forms remove; false if none does. */
export function inAll(values: (string | undefined)[], matches: Matches): Comparison {
  const all = values.flatMap((value) => [value, value && trimmed(value)])
  const count = all.filter((value) => value !== undefined && matches(value)).length
  return count === 0 ? false : count === all.length || undefined
}

export const compileRules = <Rule extends { condition: Condition }>(
  rules: Rule[],
  options: Cased,
): (Rule & CompiledRule<RequestView>)[] =>
  rules.map((rule) => {
    const certain = compileCondition(rule.condition, options, false)
    const mismatch = compileCondition(rule.condition, options)
    return { ...rule, mismatch, isCertain: (view) => certain(view) === undefined }
  })

/**
 * The rules that may be the first to match, and true if one of them matches for certain. A client cannot choose a cheaper rule with an
 * ambiguous request, because the strictest of them counts.
 */
export function reached<View, Rule extends CompiledRule<View>>(
  rules: Rule[],
  view: View,
): [Rule[], boolean] {
  const found: Rule[] = []
  for (const rule of rules) {
    if (rule.mismatch(view)) continue
    found.push(rule)
    if (rule.isCertain(view)) return [found, true]
  }
  return [found, false]
}

/** `*.example.com` matches every subdomain of example.com, but not example.com itself. */
const hostMatches = (name: string, host: string) =>
  name.startsWith('*.') ? host.endsWith(name.slice(1)) : host === name

/** @param bot as the request view reports it @param wanted true for any verified bot, false for other clients, or categories */
const isBot = (bot: string | undefined, wanted: boolean | string[]) =>
  Array.isArray(wanted)
    ? wanted.includes(bot?.toLowerCase() ?? '')
    : bot !== undefined && (bot !== '') === wanted

/** Compiles patterns into a test of a text, in any letter case. Without patterns every text matches. */
function anyMatcher(patterns?: string[]): Matches {
  const matchers = patterns?.map(textMatcher)
  return (value) => {
    const text = value.toLowerCase()
    return !matchers || matchers.some((matches) => matches(text))
  }
}

/** Compiles a pattern: `curl/*` matches the start, `*bot` the end, `*bot*` any part, and a pattern without `*` the whole text. */
export function textMatcher(pattern: string): (value: string) => boolean {
  const text = pattern.replace(/^\*|\*$/g, '')
  if (pattern.startsWith('*') && pattern.endsWith('*')) return (value) => value.includes(text)
  if (pattern.endsWith('*')) return (value) => value.startsWith(text)
  if (pattern.startsWith('*')) return (value) => value.endsWith(text)
  return (value) => value === text
}
