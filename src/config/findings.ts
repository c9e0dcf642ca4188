/**
 * What the linter finds in a configuration that parses, by code: docs/linter.md has a line on each. Here at the bottom, since policies
 * and lists say which they accept.
 */
export const findingCodes = [
  'unreachable-policy',
  'skipped-by-allow',
  'refused-by-deny',
  'redundant-policy',
  'list-takes-all',
  'cost-never-fits',
  'unlikely-duration',
  'ipv6-by-address',
  'spoofable-key',
  'spoofable-list',
  'dodgeable-policy',
  'login-fails-open',
  'large-log',
  'many-policies',
  'global-key',
  'tight-shield',
  'unused-setting',
  'no-origin',
  'no-policies',
  'never-charges',
  'unknown-plan',
  'unknown-method',
] as const

/** A finding that whoever means it may accept. */
export type FindingCode = (typeof findingCodes)[number]

/** Something in a configuration that is surely or probably not meant. */
export interface Finding {
  /** `invalid` and `duplicate-name` are the parser's: such a configuration does not run. */
  code: FindingCode | 'invalid' | 'duplicate-name'
  /** Where, as one would write it in code: `policies[2].match`. */
  path: string
  /** What is wrong, in a sentence. */
  message: string
  /** What to do about it; empty where the message says it all. */
  hint: string
}
