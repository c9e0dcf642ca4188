import { variablesOf } from './bindings.ts'

/** One thing wrong in a configuration. */
export interface ConfigProblem {
  /** Where, as one would write it in code: `policies[2].window`. */
  path: string
  /** What was expected there. */
  expected: string
  /** What stood there, shortened. */
  got: string
  /** The name of the policy or the entry of a list that it is in. */
  within?: string
}

/** A problem in a sentence, without its path. */
export const messageOf = ({ expected, got, within }: ConfigProblem): string =>
  `expected ${expected}, got ${got}${within ? ` (in "${within}")` : ''}`

/** The configuration is wrong. Tells all its problems at once, one a line: path, expected, got. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly problems: ConfigProblem[]

  constructor(problems: ConfigProblem[]) {
    const lines = problems.map((problem) => `${problem.path}: ${messageOf(problem)}`)
    super(lines.length === 1 ? lines[0] : `${lines.length} problems\n  ${lines.join('\n  ')}`)
    this.problems = problems
  }
}

/**
 * Why the store gave no answer.
 * - `not-configured`: no URL or token, or a URL that is none.
 * - `timeout`: no answer within the deadline. The call may have counted.
 * - `unreachable`: the connection failed. The call may have counted.
 * - `unauthorized`: the token was refused, or may not run scripts.
 * - `over-quota`: the database refuses for its plan's limits or its budget.
 * - `database-full`: the database holds as much as its plan or its memory allows, and refuses writes.
 * - `bad-reply`: something answered, but not the Upstash REST API, or not our script.
 * - `redis-error`: Redis refused the command.
 * - `circuit-open`: not asked, since it failed repeatedly a moment ago.
 * - `idempotency-conflict`: the idempotency key was used before for another call. The caller's mistake.
 * - `internal`: none of these; a fault of ours.
 */
export type StoreErrorCode =
  | 'not-configured'
  | 'timeout'
  | 'unreachable'
  | 'unauthorized'
  | 'over-quota'
  | 'database-full'
  | 'bad-reply'
  | 'redis-error'
  | 'circuit-open'
  | 'idempotency-conflict'
  | 'internal'

const meanings: Record<Exclude<StoreErrorCode, 'not-configured'>, string> = {
  timeout: 'no answer within the deadline',
  unreachable: 'the connection failed',
  unauthorized: 'the token was refused',
  'over-quota': 'the database refuses commands: over its quota or budget',
  'database-full': 'the database has no room for another record',
  'bad-reply': 'the answer was not what the script replies',
  'redis-error': 'Redis refused the command',
  'circuit-open': 'not asked: it failed repeatedly a moment ago',
  'idempotency-conflict': 'its name was used for another call',
  internal: 'the limiter failed',
}

/** The store gave no answer. Its text never holds keys, tokens or scripts, whatever the cause said. */
export class StoreError extends Error {
  override readonly name = 'StoreError'
  readonly code: StoreErrorCode

  /** Which database, where there are several. */
  readonly store: string | undefined

  /** With the code `timeout`: resolves with the reply that the caller did not wait for, or with the error that ended the call. */
  readonly late: Promise<unknown> | undefined

  /**
   * @param hint a word or two that are safe to log, such as the class of the error underneath
   * @param store the name of the database, where there are several
   */
  constructor(code: StoreErrorCode, hint?: string, store?: string, late?: Promise<unknown>) {
    const { url, token } = variablesOf(store)
    const meaning =
      code === 'not-configured'
        ? `${url} and ${token} must name a database and its token`
        : meanings[code]
    super(`${code}: ${meaning}${hint ? ` (${hint})` : ''}`, hint ? { cause: hint } : undefined)
    this.code = code
    this.store = store
    this.late = late
  }

  /** The same of a database by its name. */
  from(store: string): StoreError {
    return new StoreError(this.code, this.cause as string | undefined, store, this.late)
  }
}

/** An error as a StoreError: `internal`, with its class as the hint, if it is another. */
export const asStoreError = (error: unknown): StoreError =>
  error instanceof StoreError ? error : new StoreError('internal', (error as Error)?.name)
