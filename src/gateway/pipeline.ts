/** The life of a request in four steps: view, match, decide, settle. */
import type { Context } from 'hono'
import type { Bindings } from '../base/bindings.ts'
import { withResolvers } from '../base/with-resolvers.ts'
import type { Policy } from '../config/parse.ts'
import { whenEnded } from '../http/body-end.ts'
import { withCors } from '../http/cors.ts'
import { refusal, withDecisionFields } from '../http/response.ts'
import { wouldRefuse } from '../http/shadow.ts'
import type { Limiter } from '../limiter/create.ts'
import { decide, prepare } from '../limiter/decide.ts'
import type { LimiterParts, Outcome } from '../limiter/question.ts'
import { type Charge, dependsOnResponse, holdsSlots, settle } from '../limiter/settle.ts'
import { type RuntimeContext, viewOf } from '../request/view.ts'
import type { Speculative } from './speculative.ts'

export interface Responders {
  /** Calls the origin while the store decides, if all policies that apply allow it. */
  speculate?: (policies: Policy[]) => Speculative | undefined
  /** Prepares a refusal before its fields are added. Defaults to no change. */
  refuse?: (refusal: Response) => Response
  /** Makes the response to an admitted request. */
  respond: (speculative: Speculative | undefined) => Response | Promise<Response>
}

/** Takes one request through all steps. Rejects only if `respond` rejects. */
export async function limitRequest(
  { config, log, rulesOf, partsOf }: Limiter,
  c: Context,
  { speculate, refuse = (answer) => answer, respond }: Responders,
): Promise<Response> {
  const env = (c.env ?? {}) as Bindings & Record<string, unknown>
  const waitUntil = (promise: Promise<unknown>) => keepAlive(c, promise)
  const parts = partsOf(env)
  const startedAt = Date.now()

  const view = viewOf(c.req.raw, { env, context: c, waitUntil }, config)
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
  const settled = charges && settleLater(c.req.raw, charges, parts, waitUntil)
  c.set('rateLimit', decision)
  for (const policy of wouldRefuse(decision)) {
    log('shadow-refused', policy, 'a shadow policy would have refused a request')
  }
  const own = !decision.allowed
  if (own) speculative?.cancel()
  const answer = own
    ? refuse(refusal(decision))
    : await respondOr500(() => respond(speculative), settled)
  const response = withDecisionFields(settled ? settled(answer) : answer, decision, config, { own })
  return withCors(response, c.req.header('origin'), config, { own })
}

type Settle = (answer: Response) => Response

/** Settles charges as for a 500 if `respond` throws. Hono itself answers each `Error` of a handler, so only other values arrive here. */
async function respondOr500(respond: () => Response | Promise<Response>, settled?: Settle) {
  try {
    return await respond()
  } catch (error) {
    settled?.(new Response(null, { status: 500 }))
    throw error
  }
}

/** Prepares to settle charges after the response. Calls `waitUntil` immediately, so that they are settled even if the client disconnects. */
function settleLater(
  { method }: Request,
  charges: Charge[],
  { onStoreError }: LimiterParts,
  waitUntil: RuntimeContext['waitUntil'],
): Settle {
  const { promise, resolve } = withResolvers<void>()
  waitUntil(promise)
  return (answer) => {
    const { status, headers } = answer
    const finish = () =>
      Promise.all(
        charges.map((charge) => settle(charge, { status, headers }, waitUntil).catch(onStoreError)),
      ).then(() => resolve(), resolve)
    // Hono discards the body of a response to HEAD, so `whenEnded` would never call back.
    if (charges.some(holdsSlots) && method !== 'HEAD') return whenEnded(answer, finish)
    finish()
    return answer
  }
}

/** Keeps the isolate alive until a promise settles. Outside Workers there is nothing to keep alive. */
export function keepAlive(c: Context, promise: Promise<unknown>) {
  try {
    c.executionCtx.waitUntil(promise)
  } catch {
    promise.catch(() => {})
  }
}
