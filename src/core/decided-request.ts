import type { Decision } from './base/decision.ts'
import { type Soon, whenKnown } from './base/when-known.ts'
import { observe } from './decide/observed.ts'
import type { DecideOptions, LimiterParts, Outcome } from './decide/question.ts'
import { type ResponseHead, readsBody } from './decide/settle.ts'
import type { Limiter } from './feature.ts'
import type { Matched, Rules } from './program/match.ts'
import type { Verified } from './program/verified.ts'
import type { RequestView } from './request/view.ts'
import { withCors } from './respond/cors.ts'
import { withChanged } from './respond/own-fields.ts'
import { refuse } from './respond/refusal.ts'
import { decisionFields, refusal, withFields } from './respond/response.ts'
import type { settleLater } from './settle-later.ts'

/** What is known of a request when it is decided. */
export interface Circumstances extends DecideOptions {
  limiter: Limiter
  rules: Rules
  parts: LimiterParts
  view: RequestView
  /** Set for a request of `sluice verify`. */
  verified: Verified | undefined
}

/** A request after its decision. */
export interface CheckedRequest {
  readonly decision: Decision
  readonly view: RequestView
  /** True if the request may pass: it is admitted, and Sluice does not answer it itself. */
  readonly passes: boolean
  /** True if the cost is in the body of the response. */
  readonly isRead: boolean
  /** Makes the response to a request that does not pass, with the fields of the decision. */
  refuse(): Soon<Response>
  /** Adds the fields of the decision to the response to an admitted request, and settles charges by it. Call it once. */
  finish(response: Response): Response
  /** Adds the fields of the decision to a response, and settles nothing. */
  withFields(response: Response): Response
  /** Settles charges without a `Response`, for servers that write their own. Without a head the response is not known, and counts. */
  settle(head?: ResponseHead): void
}

/** A request that the limiter has decided. A class, so that a request makes no function that it does not call. */
export class DecidedRequest implements CheckedRequest {
  // The constructor sets all fields, so the declarations set none.
  declare private readonly circumstances: Circumstances
  declare private readonly matched: Matched
  declare private readonly outcome: Outcome
  declare private readonly settled: ReturnType<typeof settleLater> | undefined
  /** The decision as the client is told it. */
  declare private readonly told: Decision
  declare readonly decision: Decision
  declare readonly view: RequestView
  declare readonly passes: boolean
  declare readonly isRead: boolean

  constructor(circumstances: Circumstances, matched: Matched, outcome: Outcome) {
    const { limiter, parts, view, verified } = circumstances
    const { decision } = outcome
    const { stages, log } = limiter
    if (parts.observer) observe(parts, matched, outcome, view, view, verified !== undefined)
    for (const { mode, allowed, policy } of decision.limits) {
      if (mode === 'shadow' && !allowed)
        log('shadow-refused', policy, 'a shadow policy would have refused a request')
    }
    this.circumstances = circumstances
    this.matched = matched
    this.outcome = outcome
    this.told = (!decision.allowed && stages.told?.(decision)) || decision
    this.decision = decision
    this.view = view
    this.passes = decision.allowed && (!verified || verified.through)
    // A request that Sluice answers has no response by which its charges could be settled.
    const charges = verified && !this.passes ? undefined : outcome.charges
    this.settled = charges && stages.settleLater!(charges, parts, view.waitUntil, stages)
    this.isRead = charges !== undefined && [...charges.keys()].some(({ terms }) => readsBody(terms))
  }

  refuse(): Soon<Response> {
    const { limiter, rules, view, verified } = this.circumstances
    const { config, stages, log } = limiter
    if (this.decision.allowed)
      return this.withFields(new Response(null, { status: 204, headers: noStore }))
    const told = this.told
    const standard = refusal(told, decisionFields(told, config))
    const context = () => view.context
    const refusing = refuse(told, view.request, rules.config, stages, log, context, standard)
    return whenKnown(refusing, (answer) => {
      if (answer !== standard) return this.withFields(answer)
      const complete = config.cors ? withCors(answer, config, this.page) : answer
      return verified ? this.withReport(complete) : complete
    })
  }

  finish(response: Response): Response {
    const settled = this.settled
    return this.withFields(
      settled ? settled.withResponse(response, this.view.request.method) : response,
    )
  }

  withFields(response: Response): Response {
    const { limiter, verified } = this.circumstances
    let complete = response
    // The constructor of `Response` refuses the status of an upgrade, outside of Workers, and that of `Response.error()`.
    const { status, webSocket } = response as Response & { webSocket?: unknown }
    if (status >= 200 || webSocket) {
      const marked = this.outcome.mark?.(response) ?? response
      complete = withFields(marked, this.told, limiter.config, this.page)
    }
    return verified ? this.withReport(complete) : complete
  }

  settle(head?: ResponseHead): void {
    this.settled?.now(head)
  }

  /** The page that may read a response of the limiter itself. Deno cannot read the field after an upgrade, which has passed. */
  private get page(): string | null | undefined {
    const isOwn = !this.passes && this.circumstances.limiter.config.cors
    return isOwn ? this.view.request.headers.get('origin') : undefined
  }

  private withReport(response: Response): Response {
    const { verified, view } = this.circumstances
    const fields = verified!.fields(this.outcome, this.matched, view, response.headers)
    return withChanged(response, (headers) => {
      for (const name in fields) headers.set(name, fields[name]!)
    })
  }
}

const noStore = { 'Cache-Control': 'no-store' }
