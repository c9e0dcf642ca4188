/** A request of `sluice verify`, as the core sees it. Types only. */
import type { RuntimeContext } from '../base/runtime.ts'
import type { Matched } from '../decide/matched.ts'
import type { Outcome } from '../decide/question.ts'
import type { RequestView } from '../request/view.ts'

/** A request of `sluice verify`. Policies apply to it as to any other request, but it has counters of its own. */
export interface Verified {
  /** True if the request goes on after its admission. Otherwise Sluice answers it. */
  through: boolean
  /** Gives the matches of the request counters of their own. */
  mark: (matched: Matched) => Matched
  /** The fields that report the decision on the request `from` to its sender, with those of the response, `sent`. */
  fields: (
    outcome: Outcome,
    matched: Matched,
    from: Pick<RequestView, 'address' | 'request'>,
    sent: Headers,
  ) => Record<string, string>
}

export interface VerifyStages {
  /** Recognizes a request of `sluice verify`. Returns `undefined` for any other request. */
  verify?: (
    request: Request,
    env: RuntimeContext['env'],
  ) => Promise<Verified | undefined> | undefined
}
