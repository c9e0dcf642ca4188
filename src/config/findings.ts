/**
 * The codes of what the linter finds in a configuration that parses; docs/reference/linter.md describes each. The parser needs them here, below
 * the linter: a policy or a list says which findings it accepts.
 */
export const findingCodes = [
  'list-takes-all',
  'cost-never-fits',
  'unlikely-duration',
  'ipv6-by-address',
  'spoofable-key',
  'spoofable-list',
  'login-fails-open',
  'large-log',
  'global-key',
  'tight-shield',
  'no-origin',
  'no-policies',
  'never-charges',
  'unknown-plan',
  'unknown-method',
] as const

/** A finding that the configuration may accept. */
export type FindingCode = (typeof findingCodes)[number]

/** A mistake, or a probable mistake, in a configuration. */
export interface Finding {
  /** `invalid` and `duplicate-name` come from the parser: such a configuration does not run. */
  code: FindingCode | 'invalid' | 'duplicate-name'
  /** Where, as one would write it in code: `policies[2].match`. */
  path: string
  /** What is wrong, in a sentence. */
  message: string
  /** What to do about it; empty where the message says it all. */
  hint: string
}
