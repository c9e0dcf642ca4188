import { inNetworks } from '../base/ip.ts'
import type { Condition } from '../config/schema/condition.ts'
import { pathMatcher } from '../request/path.ts'
import type { RequestView } from '../request/view.ts'

/** The first field of a condition that a request does not match; `undefined` if it matches all. */
export type Mismatch = keyof Condition | undefined

/** Compiles a condition into comparisons, the cheap ones first. */
export function compileCondition(
  { method, host, path, country, header, ip, not }: Condition,
  { caseSensitivePaths }: { caseSensitivePaths: boolean },
): (view: RequestView) => Mismatch {
  const tests: [keyof Condition, (view: RequestView) => unknown][] = []
  const add = (field: keyof Condition, test: (view: RequestView) => unknown) =>
    tests.push([field, test])

  if (method) add('method', (view) => method.includes(view.method))
  if (host) add('host', (view) => host.some((name) => hostMatches(name, view.host)))
  if (country) add('country', (view) => country.includes(view.country ?? 'XX'))
  if (path) {
    const matchers = path.map((pattern) => pathMatcher(pattern, caseSensitivePaths))
    add('path', (view) => matchers.some((matches) => matches(view.path)))
  }
  if (header) {
    const matchers = header.map(({ name, values }) => {
      const texts = values?.map(textMatcher)
      return ({ request }: RequestView) => {
        const value = request.headers.get(name)?.toLowerCase()
        return value !== undefined && (!texts || texts.some((matches) => matches(value)))
      }
    })
    add('header', (view) => matchers.every((matches) => matches(view)))
  }
  if (ip) {
    const includes = inNetworks(ip)
    add('ip', ({ address }) => address !== undefined && includes(address))
  }
  if (not) {
    const others = not.map((condition) => compileCondition(condition, { caseSensitivePaths }))
    add('not', (view) => others.every((mismatch) => mismatch(view) !== undefined))
  }
  return (view) => tests.find(([, test]) => !test(view))?.[0]
}

/** `*.example.com` matches every subdomain of example.com, but not example.com itself. */
const hostMatches = (name: string, host: string) =>
  name.startsWith('*.') ? host.endsWith(name.slice(1)) : host === name

/** Compiles a pattern: `curl/*` matches the start, `*bot` the end, `*bot*` any part, and a pattern without `*` the whole text. */
function textMatcher(pattern: string): (value: string) => boolean {
  const text = pattern.replace(/^\*|\*$/g, '')
  if (pattern.startsWith('*') && pattern.endsWith('*')) return (value) => value.includes(text)
  if (pattern.endsWith('*')) return (value) => value.startsWith(text)
  if (pattern.startsWith('*')) return (value) => value.endsWith(text)
  return (value) => value === text
}
