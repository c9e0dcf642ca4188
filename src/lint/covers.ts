/** Compares conditions as text. Conservative: may miss a relation, never reports a false one. */
import { type Address, networkRange } from '../core/base/ip.ts'
import type { Config, Policy } from '../core/config/parse.ts'
import type { Condition } from '../core/config/schema/condition.ts'
import { CREDENTIALS } from '../core/config/schema/reads.ts'
import { textMatcher } from '../core/program/condition.ts'

/** Reports whether every request that matches `inner` also matches `outer`. */
export const covers = (outer: Condition, inner: Condition): boolean =>
  anyOf(outer.method, inner.method) &&
  anyOf(outer.country, inner.country) &&
  anyOf(outer.ip, inner.ip, networkCovers) &&
  anyOf(outer.host, inner.host, hostCovers) &&
  anyOf(outer.path, inner.path ?? ['/*'], pathCovers) &&
  named(outer.header, inner.header) &&
  named(outer.query, inner.query) &&
  anyOf(outer.asn, inner.asn) &&
  anyOf(outer.ja4, inner.ja4) &&
  CREDENTIALS.every((field) => outer[field] === undefined || outer[field] === inner[field]) &&
  botCovers(outer.verifiedBot, inner.verifiedBot) &&
  scoreCovers(outer.botScore, inner.botScore) &&
  allOf(outer.body, inner.body) &&
  allOf(outer.not, inner.not)

/** For fields of which a request matches any one value. */
const anyOf = <T>(
  outer: T[] | undefined,
  inner: T[] | undefined,
  test = (wide: T, narrow: T) => wide === narrow,
) => !outer || (inner?.every((narrow) => outer.some((wide) => test(wide, narrow))) ?? false)

/** For fields of which a request matches every item. */
const allOf = (outer: object[] = [], inner: object[] = []) =>
  outer.every((item) => inner.some((other) => JSON.stringify(other) === JSON.stringify(item)))

/** For headers and parameters: of each, any one value. */
const named = (outer: Condition['header'] = [], inner: Condition['header'] = []) =>
  outer.every(({ name, values }) =>
    inner.some((other) => other.name === name && anyOf(values, other.values, textCovers)),
  )

/** `free*` covers `freedom`. */
const textCovers = (wide: string, narrow: string) =>
  wide === narrow || (!narrow.includes('*') && textMatcher(wide)(narrow))

/** Compares addresses of one family. Any other pair is not comparable. */
export const compareBytes = (a: Address, b: Address): number => {
  if (a.length !== b.length) return Number.NaN
  const at = a.findIndex((byte, index) => byte !== b[index])
  return at < 0 ? 0 : a[at]! - b[at]!
}

/** `10.0.0.0/8` covers `10.1.0.0/16`. */
function networkCovers(wide: string, narrow: string): boolean {
  const [[first, last], [from, to]] = [networkRange(wide)!, networkRange(narrow)!]
  return compareBytes(first, from) <= 0 && compareBytes(to, last) <= 0
}

/** `true` covers every category. */
const botCovers = (outer: Condition['verifiedBot'], inner: Condition['verifiedBot']) =>
  outer === undefined ||
  (Array.isArray(inner)
    ? outer === true || (Array.isArray(outer) && anyOf(outer, inner))
    : outer === inner)

const scoreCovers = (outer: Condition['botScore'], inner: Condition['botScore']) =>
  !outer ||
  (inner !== undefined &&
    (outer.atLeast ?? 1) <= (inner.atLeast ?? 1) &&
    (outer.below ?? 100) >= (inner.below ?? 100))

/** `*.example.com` covers `www.example.com` and `*.eu.example.com`. */
export const hostCovers = (wide: string, narrow: string) =>
  wide === narrow || (wide.startsWith('*.') && narrow.endsWith(wide.slice(1)))

/** `/a/*` covers `/a`, `/a/b/*` and `/a/:id`. */
const pathCovers = (wide: string, narrow: string) =>
  wide === narrow || (wide.endsWith('/*') && `${narrow}/`.startsWith(wide.slice(0, -1)))

/** Reports whether a policy is enforced on every request that another policy applies to, except requests without its key. */
export const accompanies = (policy: Policy, other: Policy, { allow }: Config): boolean =>
  policy.mode === 'enforce' &&
  covers(policy.match, other.match) &&
  allow.every(({ policies }) => !policies?.includes(policy.name) || policies.includes(other.name))

/** The other policies that are enforced on every request that a policy applies to. */
export const alwaysBeside = (policy: Policy, config: Config): Policy[] =>
  config.policies.filter(
    (other) =>
      other !== policy && other.onMissingKey !== 'skip' && accompanies(other, policy, config),
  )
