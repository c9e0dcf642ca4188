/** Compares conditions as text. Conservative: may miss a relation, never reports a false one. */
import type { Config, Policy } from '../core/config/parse.ts'
import type { Condition } from '../core/config/schema/condition.ts'

/** Reports whether every request that matches `inner` also matches `outer`. */
export const covers = (outer: Condition, inner: Condition): boolean =>
  anyOf(outer.method, inner.method) &&
  anyOf(outer.country, inner.country) &&
  anyOf(outer.ip, inner.ip) &&
  anyOf(outer.host, inner.host, hostCovers) &&
  anyOf(outer.path, inner.path ?? ['/*'], pathCovers) &&
  allOf(outer.header, inner.header) &&
  allOf(outer.query, inner.query) &&
  anyOf(outer.asn, inner.asn) &&
  anyOf(outer.ja4, inner.ja4) &&
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
const hostCovers = (wide: string, narrow: string) =>
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
