/** One error in a configuration. */
export interface ConfigProblem {
  /** Path of the setting, written as in code: `policies[2].window`. */
  path: string
  /** A description of the accepted values. */
  expected: string
  /** The actual value, shortened. */
  got: string
  /** Name of the policy or list entry that contains the setting. */
  within?: string
  /** What to do, in whole sentences. */
  hint?: string
}

/** The message of a problem, without its path. */
export const messageOf = ({ expected, got, within, hint }: ConfigProblem): string =>
  `expected ${expected}, got ${got}${within ? ` (in "${within}")` : ''}${hint ? `. ${hint}` : ''}`

/** The message of a problem, with its path. */
export const lineOf = (problem: ConfigProblem): string => `${problem.path}: ${messageOf(problem)}`

/** The configuration is invalid. The message lists every problem, one per line: path, expected, got. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly problems: ConfigProblem[]

  constructor(problems: ConfigProblem[]) {
    const lines = problems.map(lineOf)
    super(lines.length === 1 ? lines[0] : `${lines.length} problems\n  ${lines.join('\n  ')}`)
    this.problems = problems
  }
}

const meanings = {
  'not-configured':
    'set UPSTASH_REDIS_REST_URL and UPSTASH_REDIS_REST_TOKEN to the URL and token of a database',
  timeout: 'no answer within the deadline',
  unreachable: 'the connection failed',
  unauthorized: 'the token or the password was refused',
  'over-quota': 'the database is over its quota or budget',
  'database-full': 'the database is full',
  'bad-reply': 'the response is not a reply of the script',
  'redis-error': 'Redis refused the command',
  'circuit-open': 'no call was made, after repeated failures',
  'idempotency-conflict': 'the idempotency key was used for another call',
  internal: 'the limiter failed',
}

/**
 * Why the store did not answer.
 * - `not-configured`: the URL or the token is missing, or the URL is invalid.
 * - `timeout`: no answer within the deadline. The call may have been charged.
 * - `unreachable`: the connection failed. The call may have been charged.
 * - `unauthorized`: the database refuses the token or the password, or the user may not run scripts.
 * - `over-quota`: the database refuses commands because its plan or budget is exhausted.
 * - `database-full`: the database refuses writes because its storage or memory is full.
 * - `bad-reply`: the response is not from the Upstash REST API, or not a reply of the script.
 * - `redis-error`: Redis refuses the command.
 * - `circuit-open`: the breaker sends no calls after repeated failures.
 * - `idempotency-conflict`: the idempotency key was used before for another call. This is an error of the caller.
 * - `internal`: a bug in Sluice.
 */
export type StoreErrorCode = keyof typeof meanings

/** The hint of an error whose call was never sent, so that nothing was charged. */
export const NOT_SENT = 'not sent'

/** The store did not answer. The message never contains keys, tokens or scripts. */
export class StoreError extends Error {
  override readonly name = 'StoreError'
  readonly code: StoreErrorCode

  /** @param hint one or two words that are safe to log, such as the class of the original error */
  constructor(code: StoreErrorCode, hint?: string) {
    super(
      `${code}: ${meanings[code]}${hint ? ` (${hint})` : ''}`,
      hint ? { cause: hint } : undefined,
    )
    this.code = code
  }
}

/** Converts an error to a StoreError. Any other error becomes `internal`, with its class as the hint. */
export const asStoreError = (error: unknown): StoreError =>
  error instanceof StoreError ? error : new StoreError('internal', (error as Error)?.name)

/** A value as text for a message, cut to 60 characters. */
export function show(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (/^(number|bigint)$/.test(typeof value) || value instanceof RegExp)
    return shortened(String(value))
  try {
    return shortened(JSON.stringify(value) ?? typeof value)
  } catch {
    return typeof value // JSON.stringify throws for circular objects
  }
}

export const shortened = (text: string) => (text.length > 60 ? `${text.slice(0, 60)}…` : text)
