/** Short ways to write configurations and to state the linter's findings. */
import { expect, test } from 'vitest'
import type {
  ConfigOptions,
  ListOptions,
  MatchOptions,
  PolicyOptions,
} from '../../src/core/config/options.ts'
import { jwt as createJwt } from '../../src/features/jwt/index.ts'
import { lint } from '../../src/lint/lint.ts'

type Terms = Partial<PolicyOptions>
export const base = { name: 'a', limit: 100, window: '1m' } as const

/** A configuration with one policy, `a`. */
export const one = (change: Terms, rest: Partial<ConfigOptions> = {}): ConfigOptions => ({
  ...rest,
  policies: [{ ...base, ...change }],
})
/** A configuration with the policies `a`, `b`, and so on. */
export const several = (...policies: Terms[]): ConfigOptions => ({
  policies: policies.map((policy, index) => ({ ...base, name: 'abcd'[index]!, ...policy })),
})
export const matching = (match: MatchOptions, rest?: Partial<ConfigOptions>) => one({ match }, rest)
export const priced = (cost: PolicyOptions['cost'], change: Terms = {}) =>
  one({ ...change, cost: cost! })

const listing = several({}, { match: { path: '/api/*', method: ['GET', 'POST'] }, key: 'asn' })
export const allowing = (...allow: (ListOptions & { policies?: string | string[] })[]) => ({
  ...listing,
  allow,
})
export const denying = (...deny: ListOptions[]) => ({ ...listing, deny })

export const login = (change: Terms = {}) =>
  one({ match: { path: '/login', method: 'POST' }, limit: 5, onStoreError: 'allow', ...change })
export const shielded = (limit: number, change: object = {}) => ({
  shield: { binding: 'SHIELD', limit, period: '10s' as const, ...change },
})
export const planned = (customers: Record<string, string>): ConfigOptions => ({
  ...one({
    key: 'country',
    limits: { free: 100, pro: 5000 },
    plan: { key: 'country', table: 'customers' },
  }),
  tables: { customers },
})
export const jwt = createJwt({ secret: 'JWT_SECRET' })

/** The findings of a configuration, each as "code path". */
export const found = (config: unknown) => lint(config).map(({ code, path }) => `${code} ${path}`)

/** The only finding of a configuration, the configuration, and a similar one without findings. */
type Case = [finding: string, broken: object, nearMiss: object]

/** The cases of several values, each with its sentence. */
export const casesOf = <const T>(values: T[], caseOf: (value: T) => [title: string, ...Case]) =>
  Object.fromEntries(
    values.map((value): [string, Case] => {
      const [title, ...rest] = caseOf(value)
      return [title, rest]
    }),
  )

/** Tests cases by a sentence about the configuration. */
export const testFindings = (cases: Record<string, Case>) =>
  test.each(Object.entries(cases).map(([title, one]): [string, ...Case] => [title, ...one]))(
    '%s The linter reports %s.',
    (_, finding, broken, nearMiss) => {
      expect(found(broken)).toEqual([finding])
      expect(found(nearMiss)).toEqual([])
    },
  )

/** A configuration and the message of its only finding. */
export const testMessages = (cases: [ConfigOptions | object, string][]) =>
  test.each(cases)('The linter explains its finding in %j.', (config, message) => {
    const findings = lint(config)
    expect(findings.map((finding) => finding.message)).toEqual([message])
    expect(findings[0]!.hint).toMatch(/^[A-Z].*[.?]$/)
  })
