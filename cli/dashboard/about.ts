import type { Finding } from '../../src/core/config/findings.ts'

/** What the local server says about itself: the answer of `GET /about`. */
export interface About {
  /** The address of the Worker. */
  worker: string
  /** The linter's findings of a configuration on this machine. */
  findings?: { file: string; list: Finding[] } | undefined
  /** True if a sink keeps the counts of a week. */
  keepsWeek?: true
}
