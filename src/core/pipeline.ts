/** The life of a request in four steps: view, match, decide, settle. */
import type { Decision } from './base/decision.ts'
import { ConfigError } from './base/errors.ts'
import { type Soon, whenKnown } from './base/when-known.ts'
import { withResolvers } from './base/with-resolvers.ts'
import type { Policy } from './config/parse.ts'
import type { Limiter } from './create.ts'
import { NotConfigured } from './decide/configured.ts'
import { decide, knownRefusal, prepare } from './decide/decide.ts'
import type { PolicyLimit } from './decide/limit.ts'
import { observe } from './decide/observed.ts'
import type { LimiterParts, Outcome } from './decide/question.ts'
import {
  type Charges,
  holdsSlots,
  type Kept,
  type ResponseHead,
  readsBody,
  settle,
  takeMore,
} from './decide/settle.ts'
import type { PathHandler, Stages } from './feature.ts'
import { RequestView, type RuntimeContext } from './request/view.ts'
import { whenEnded } from './respond/body-end.ts'
import { withCors } from './respond/cors.ts'
import { withChanged } from './respond/own-fields.ts'
import { refuse } from './respond/refusal.ts'
import { decisionFields, problem, refusal, withDecisionFields } from './respond/response.ts'
import type { Speculative } from './speculative.ts'

/** A request after its decision. */
export interface CheckedRequest {
  decision: Decision
  view: RequestView
  /** The call of the origin that began before the decision, if there was one. */
  speculative: Speculative | undefined
  /** True if the request may pass: it is admitted, and Sluice does not answer it itself. */
  passes: boolean
  /** Makes the response to a request that does not pass, with the fields of the decision. */
  refuse: () => Soon<Response>
  /** True if the cost is in the body of the response. */
  isRead: boolean
  /** Adds the fields of the decision to the response to an admitted request, and settles charges by it. Call it once. */
  finish: (response: Response) => Response
  /** Adds the fields of the decision to a response, and settles nothing. */
  withFields: (response: Response) => Response
  /** Settles charges without a `Response`, for servers that write their own. */
  settle: (head: ResponseHead) => void
}

/**
 * Takes a request through view, match and decide.
 * @param speculate calls the origin while the store decides, if all policies that apply allow it
 * @throws {ConfigError} if a policy needs the client address, and the configuration does not say where it comes from
 */
export async function checkRequest(
  limiter: Limiter,
  request: Request,
  runtime: RuntimeContext,
  speculate?: Responders['speculate'],
): Promise<CheckedRequest> {
  const { config, log, readAddress, rulesOf, partsOf, stages } = limiter
  const { waitUntil } = runtime
  const answering = stages.handlers && handle(limiter, request, runtime)
  const answer = answering && (await answering)
  if (answer) return answered(answer, new RequestView(request, runtime, config, readAddress))
  const verifying = stages.verify?.(request, runtime.env)
  const verified = verifying && (await verifying)
  const parts = configured(partsOf, runtime.env)
  if (parts instanceof NotConfigured) {
    log('unconfigured', '', parts.message)
    return answered(unconfigured(parts), new RequestView(request, runtime, config, readAddress))
  }
  const startedAt = Date.now()

  const view = new RequestView(request, runtime, config, readAddress)
  const rules = rulesOf(view)
  let known: Outcome | undefined
  const matching = rules.match(view, (withoutBody) => {
    const marked = verified ? verified.mark(withoutBody) : withoutBody
    known = knownRefusal(marked, parts.denialCache)
    return known !== undefined
  })
  const found = matching instanceof Promise ? await matching : matching
  const matched = verified ? verified.mark(found) : found
  const preparing = known ?? prepare({ matched }, parts)
  const prepared = preparing instanceof Promise ? await preparing : preparing

  let outcome: Outcome
  let speculative: Speculative | undefined
  if ('decision' in prepared) outcome = prepared
  else {
    const isAnswered = verified && !verified.through
    speculative = isAnswered
      ? undefined
      : speculate?.(
          prepared.limits.map(({ policy }) => policy),
          view,
        )
    const spentMs = Math.max(0, Date.now() - startedAt)
    const { closed } = runtime
    const deciding = decide(prepared, parts, { spentMs, waitUntil, request, closed })
    // Keeps the call alive if the client disconnects before the decision, so that its charge is settled.
    if (prepared.settles) waitUntil(deciding)
    outcome = await deciding
  }

  if (parts.observed) observe(parts, matched, outcome, view, runtime, verified !== undefined)
  const { decision } = outcome
  const passes = decision.allowed && (!verified || verified.through)
  // A request that Sluice answers has no response by which its charges could be settled.
  const charges = verified && !passes ? undefined : outcome.charges
  for (const { mode, allowed, policy } of decision.limits) {
    if (mode === 'shadow' && !allowed) {
      log('shadow-refused', policy, 'a shadow policy would have refused a request')
    }
  }
  const own = !passes
  if (own) speculative?.cancel()
  const settled = charges && settleLater(charges, parts, waitUntil, stages.meter)
  const origin = (config.cors && request.headers.get('origin')) ?? undefined // Deno cannot read it after an upgrade.
  const told = (!decision.allowed && stages.told?.(decision)) || decision
  const withReport = (response: Response) =>
    verified
      ? withFieldsOf(response, verified.fields(outcome, matched, view, response.headers))
      : response
  const withFields = (response: Response) => {
    const complete = canCopy(response)
      ? withCors(
          withDecisionFields(outcome.mark?.(response) ?? response, told, config),
          origin,
          config,
          { own },
        )
      : response
    return verified ? withReport(complete) : complete
  }
  return {
    decision,
    passes,
    view,
    speculative,
    refuse() {
      if (decision.allowed) return withFields(new Response(null, { status: 204, headers: noStore }))
      const standard = refusal(told, decisionFields(told, config))
      const context = () => view.context
      const complete = (answer: Response) => {
        if (answer !== standard) return withFields(answer)
        return withReport(config.cors ? withCors(answer, origin, config, { own }) : answer)
      }
      const refusing = refuse(told, request, rules.config, stages, log, context, standard)
      return whenKnown(refusing, complete)
    },
    isRead: charges !== undefined && [...charges.keys()].some(({ policy }) => readsBody(policy)),
    finish: (response) =>
      withFields(settled ? settled.withResponse(response, request.method) : response),
    withFields,
    settle: (head) => settled?.now(head),
  }
}

/** The answer of a feature to a request for a path under `/_sluice/`. */
export function handle(
  limiter: Limiter,
  request: Request,
  runtime: RuntimeContext,
  path = pathOf(request.url),
): Promise<Response | undefined> | undefined {
  return path.startsWith('/_sluice/') ? firstAnswer(path, request, runtime, limiter) : undefined
}

const firstAnswer: PathHandler = async (path, request, runtime, limiter) => {
  for (const handler of limiter.stages.handlers ?? []) {
    try {
      const answer = await handler(path, request, runtime, limiter)
      if (answer) return answer
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      return unconfigured(error)
    }
  }
  return undefined
}

/** The path as it was sent. Most URLs are not parsed for it. */
const pathOf = (url: string) => (url.includes('/_sluice/') ? new URL(url).pathname : '')

/** The parts of the limiter, or why there are none. */
function configured(partsOf: Limiter['partsOf'], env: RuntimeContext['env']) {
  try {
    return partsOf(env)
  } catch (error) {
    if (error instanceof NotConfigured) return error
    throw error
  }
}

/** The answer without a database. It names variables, and not their values. */
export const unconfigured = ({ message }: ConfigError): Response =>
  problem(500, { title: 'Not configured', detail: message })

/** A request that no policy applies to, because a feature has answered it. */
const answered = (answer: Response, view: RequestView): CheckedRequest => ({
  decision: { allowed: true, reason: 'no-policy', retryAfterMs: 0, limits: [] },
  view,
  speculative: undefined,
  passes: false,
  refuse: () => answer,
  isRead: false,
  finish: (response) => response,
  withFields: (response) => response,
  settle: () => {},
})

const noStore = { 'Cache-Control': 'no-store' }

const withFieldsOf = (response: Response, fields: Record<string, string>): Response =>
  withChanged(response, (headers) => {
    for (const [name, value] of Object.entries(fields)) headers.set(name, value)
  })

/** False for an upgrade outside of Workers and for `Response.error()`: the constructor of `Response` refuses their statuses. */
const canCopy = ({ status, webSocket }: Response & { webSocket?: unknown }) =>
  status >= 200 || Boolean(webSocket)

/** The response of a handler that throws. */
export const failed = (): ResponseHead => ({ status: 500, headers: new Headers() })

export interface Responders {
  speculate?: (policies: Policy[], view: RequestView) => Speculative | undefined
  /** Makes the response to an admitted request. */
  respond: (
    decision: Decision,
    speculative: Speculative | undefined,
    view: RequestView,
    /** True if the limiter reads the body of the response. */
    isRead: boolean,
  ) => Response | Promise<Response>
}

/** Takes one request through all steps. Rejects only if `respond` rejects. */
export async function limitRequest(
  limiter: Limiter,
  request: Request,
  runtime: RuntimeContext,
  { speculate, respond }: Responders,
): Promise<Response> {
  const checked = await checkRequest(limiter, request, runtime, speculate)
  const { decision } = checked
  if (!checked.passes) return checked.refuse()
  let response: Response
  try {
    response = await respond(decision, checked.speculative, checked.view, checked.isRead)
  } catch (error) {
    // Hono itself answers each `Error` of a handler, so only other values arrive here.
    checked.settle(failed())
    throw error
  }
  return checked.finish(response)
}

/** Prepares to settle charges after the response. Calls `waitUntil` immediately, so that they are settled even if the client disconnects. */
export function settleLater(
  charges: Charges,
  { store, onStoreError }: LimiterParts,
  waitUntil: RuntimeContext['waitUntil'],
  meter: Stages['meter'],
) {
  const { promise, resolve } = withResolvers<void>()
  waitUntil(promise)
  let isSettled = false
  const now = ({ status, headers }: ResponseHead, kept?: Kept) => {
    if (isSettled) return // A second refund would return units of other requests.
    isSettled = true
    const settling = settle(charges, store, { status, headers }, waitUntil, kept)
    resolve(settling.catch(onStoreError))
  }
  const take = (limit: PolicyLimit) => takeMore(limit, charges, store, waitUntil)
  return {
    now,
    withResponse(response: Response, method: string): Response {
      const { status, headers } = response
      const limits = [...charges.keys()]
      const end = (kept?: Kept) => now({ status, headers }, kept)
      // Servers discard the body of a response to HEAD, so `whenEnded` would never call back.
      const isSent = method !== 'HEAD'
      const metered = meter?.(response, { limits, isSent, take, end })
      if (metered) return metered
      if (isSent && limits.some(holdsSlots)) return whenEnded(response, end)
      now(response)
      return response
    },
  }
}
