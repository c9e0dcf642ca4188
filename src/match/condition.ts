import { inNetworks } from '../base/ip.ts'
import type { Condition } from '../config/schema/condition.ts'
import { pathMatcher } from '../request/path.ts'
import type { RequestView } from '../request/view.ts'

/** The first field of a condition that a request does not match; `undefined` if it matches all. */
export type Mismatch = keyof Condition | undefined

/**
 * Compiles a condition into comparisons, the cheap ones first.
 * @param unknown the result of a comparison with a body that is not yet read or cannot be read. True, so that a client cannot evade a
 * policy with an unreadable body; for `not` the opposite
 */
export function compileCondition(
  condition: Condition,
  options: { caseSensitivePaths: boolean },
  unknown = true,
): (view: RequestView) => Mismatch {
  const { method, host, path, country, asn, verifiedBot, botScore, ja4, ip, not, body } = condition
  const tests: [keyof Condition, (view: RequestView) => unknown][] = []
  const add = (field: keyof Condition, test: (view: RequestView) => unknown) =>
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
    add('path', (view) => matchers.some((matches) => matches(view.path)))
  }
  const addNamed = (
    field: 'header' | 'query',
    meets: (view: RequestView, name: string, matches: (value: string) => boolean) => boolean,
  ) => {
    const all = condition[field]?.map(({ name, values }) => ({ name, matches: anyMatcher(values) }))
    if (all) add(field, (view) => all.every(({ name, matches }) => meets(view, name, matches)))
  }
  addNamed('header', ({ request }, name, matches) => {
    const value = request.headers.get(name)
    return value !== null && matches(value)
  })
  addNamed('query', (view, name, matches) => view.query.getAll(name).some(matches))
  if (ip) {
    const includes = inNetworks(ip)
    add('ip', ({ address }) => address !== undefined && includes(address))
  }
  if (not) {
    const others = not.map((condition) => compileCondition(condition, options, !unknown))
    add('not', (view) => others.every((mismatch) => mismatch(view) !== undefined))
  }
  if (body) add('body', ({ message }) => message?.meets(body) ?? unknown)
  return (view) => {
    for (const [field, test] of tests) if (!test(view)) return field
    return undefined
  }
}

/** Compiles rules, each with a condition. */
export const compileRules = <Rule extends { condition: Condition }>(
  rules: Rule[],
  options: { caseSensitivePaths: boolean },
) => rules.map((rule) => ({ ...rule, mismatch: compileCondition(rule.condition, options) }))

/** `*.example.com` matches every subdomain of example.com, but not example.com itself. */
const hostMatches = (name: string, host: string) =>
  name.startsWith('*.') ? host.endsWith(name.slice(1)) : host === name

/** @param bot as the request view reports it @param wanted true for any verified bot, false for other clients, or categories */
const isBot = (bot: string | undefined, wanted: boolean | string[]) =>
  Array.isArray(wanted)
    ? wanted.includes(bot?.toLowerCase() ?? '')
    : bot !== undefined && (bot !== '') === wanted

/** Compiles patterns into a test of a text, in any letter case. Without patterns every text matches. */
function anyMatcher(patterns?: string[]): (value: string) => boolean {
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
