/** The codes of the linter's findings in a configuration that parses: docs/reference/linter.md describes each. They stand here for `accept`. */
export const findingCodes = [
  'list-takes-all',
  'cost-never-fits',
  'unlikely-duration',
  'ipv6-by-address',
  'spoofable-key',
  'spoofable-list',
  'spoofable-match',
  'login-fails-open',
  'large-log',
  'global-key',
  'tight-shield',
  'no-origin',
  'no-policies',
  'never-charges',
  'short-wait',
  'large-lease',
  'short-ban',
  'reserve-takes-all',
  'reserve-unreachable',
  'unknown-plan',
  'claim-of-other-key',
  'unknown-method',
  'needs-bot-management',
  'unknown-bot-category',
  'single-brace',
  'own-header',
  'unreadable-body',
  'never-a-body',
  'body-without-origin',
  'small-chunk',
  'expectation-fails',
  'never-applies',
  'never-refuses',
  'shared-counter',
  'wait-of-calls',
] as const

/** The code of a finding that a configuration may accept. */
export type FindingCode = (typeof findingCodes)[number]

/** A mistake, or a probable mistake, in a configuration. */
export interface Finding {
  /** `invalid` and `duplicate-name` are errors of the parser: the configuration does not run. */
  code: FindingCode | 'invalid' | 'duplicate-name'
  /** Path of the setting, written as in code: `policies[2].match`. */
  path: string
  /** Description of the mistake. */
  message: string
  /** Description of the fix. Empty if the message already contains it. */
  hint: string
}
