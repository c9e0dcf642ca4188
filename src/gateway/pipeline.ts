/** The life of a request in four steps: view, match, decide, settle. */
import type { Decision } from '../base/decision.ts'
import { withResolvers } from '../base/with-resolvers.ts'
import type { Policy } from '../config/parse.ts'
import { whenEnded } from '../http/body-end.ts'
import { withCors } from '../http/cors.ts'
import { refusal, withDecisionFields } from '../http/response.ts'
import { wouldRefuse } from '../http/shadow.ts'
import type { Limiter } from '../limiter/create.ts'
import { decide, prepare } from '../limiter/decide.ts'
import type { LimiterParts, Outcome } from '../limiter/question.ts'
import {
  type Charge,
  dependsOnResponse,
  holdsSlots,
  type ResponseHead,
  settle,
} from '../limiter/settle.ts'
import { clientOf, type RuntimeContext, viewOf } from '../request/view.ts'
import type { Speculative } from './speculative.ts'

/** A request after its decision. */
export interface CheckedRequest {
  decision: Decision
  /** The call of the origin that began before the decision, if there was one. */
  speculative: Speculative | undefined
  /** Adds the fields of the decision to the response, and settles charges by it. Call it once, also for a refusal. */
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
  { config, log, readAddress, rulesOf, partsOf }: Limiter,
  request: Request,
  runtime: RuntimeContext,
  speculate?: (policies: Policy[]) => Speculative | undefined,
): Promise<CheckedRequest> {
  const { waitUntil } = runtime
  const parts = partsOf(runtime.env)
  const startedAt = Date.now()

  const view = viewOf(request, runtime, config, clientOf(request, runtime, readAddress))
  const matched = await rulesOf(view).match(view)
  const prepared = await prepare({ matched }, parts)

  let outcome: Outcome
  let speculative: Speculative | undefined
  if ('decision' in prepared) outcome = prepared
  else {
    speculative = speculate?.(prepared.limits.map(({ policy }) => policy))
    const spentMs = Math.max(0, Date.now() - startedAt)
    const deciding = decide([prepared], parts, { spentMs, waitUntil })
    // Keeps the call alive if the client disconnects before the decision, so that its charge is settled.
    if (prepared.limits.some(dependsOnResponse)) waitUntil(deciding)
    const [decided] = await deciding
    outcome = decided!
  }

  const { decision, charges } = outcome
  for (const policy of wouldRefuse(decision)) {
    log('shadow-refused', policy, 'a shadow policy would have refused a request')
  }
  const own = !decision.allowed
  if (own) speculative?.cancel()
  const settled = charges && settleLater(charges, parts, waitUntil)
  const withFields = (response: Response) =>
    withCors(
      withDecisionFields(response, decision, config, { own }),
      request.headers.get('origin') ?? undefined,
      config,
      { own },
    )
  return {
    decision,
    speculative,
    finish: (response) =>
      withFields(settled ? settled.withResponse(response, request.method) : response),
    withFields,
    settle: (head) => settled?.now(head),
  }
}

export interface Responders {
  speculate?: (policies: Policy[]) => Speculative | undefined
  /** Prepares a refusal before its fields are added. Defaults to no change. */
  refuse?: (refusal: Response, decision: Decision) => Response
  /** Makes the response to an admitted request. */
  respond: (
    decision: Decision,
    speculative: Speculative | undefined,
  ) => Response | Promise<Response>
}

/** Takes one request through all steps. Rejects only if `respond` rejects. */
export async function limitRequest(
  limiter: Limiter,
  request: Request,
  runtime: RuntimeContext,
  { speculate, refuse = (answer) => answer, respond }: Responders,
): Promise<Response> {
  const { decision, speculative, finish, settle } = await checkRequest(
    limiter,
    request,
    runtime,
    speculate,
  )
  if (!decision.allowed) return finish(refuse(refusal(decision), decision))
  let response: Response
  try {
    response = await respond(decision, speculative)
  } catch (error) {
    // Hono itself answers each `Error` of a handler, so only other values arrive here.
    settle({ status: 500, headers: new Headers() })
    throw error
  }
  return finish(response)
}

/** Prepares to settle charges after the response. Calls `waitUntil` immediately, so that they are settled even if the client disconnects. */
function settleLater(
  charges: Charge[],
  { onStoreError }: LimiterParts,
  waitUntil: RuntimeContext['waitUntil'],
) {
  const { promise, resolve } = withResolvers<void>()
  waitUntil(promise)
  const now = ({ status, headers }: ResponseHead) => {
    Promise.all(
      charges.map((charge) => settle(charge, { status, headers }, waitUntil).catch(onStoreError)),
    ).then(() => resolve(), resolve)
  }
  return {
    now,
    withResponse(response: Response, method: string): Response {
      const { status, headers } = response
      // Servers discard the body of a response to HEAD, so `whenEnded` would never call back.
      if (charges.some(holdsSlots) && method !== 'HEAD') {
        return whenEnded(response, () => now({ status, headers }))
      }
      now(response)
      return response
    },
  }
}
