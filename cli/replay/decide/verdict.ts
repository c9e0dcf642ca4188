import type { LogLine } from '../line.ts'

/** What the configuration does with one request. Equal verdicts may be the same object. */
export interface Verdict {
  readonly allowed: boolean
  /** `deny`: an entry of `deny` refuses the request. `missing-key`: a policy with `onMissingKey: 'refuse'` does. Nothing is charged then. */
  readonly by: 'policies' | 'deny' | 'missing-key'
  /** The name of that entry or policy. Absent with `policies`. */
  readonly deniedBy?: string
  /** The names of the policies that apply, in the order of the configuration. Empty with `deny` and `missing-key`. */
  readonly policies: readonly string[]
  /** The enforced policies of them that refuse the request. */
  readonly refusedBy: readonly string[]
  /** The shadow policies of them that would refuse it. */
  readonly shadowRefusedBy: readonly string[]
}

export interface Decided {
  line: LogLine
  /** The verdict if the requests of each second are spread over it. */
  spread: Verdict
  /** The verdict if they come all at once. The same object as `spread` if the log has milliseconds. */
  burst: Verdict
}

/** A part of the configuration that the log cannot replay. */
export interface NotReplayed {
  /** The name of the policy, or of the entry of `allow` or `deny`, such as `deny[0]`. */
  policy: string
  /** A clause that names what the log lacks, and the remedy if there is one. */
  reason: string
}
