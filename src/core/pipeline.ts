/** The life of a request in four steps: view, match, decide, settle. */
import { ConfigError } from './base/errors.ts'
import { HOST } from './base/host.ts'
import type { Soon } from './base/when-known.ts'
import type { Limiter } from './create.ts'
import { NotConfigured } from './decide/configured.ts'
import { decide, knownRefusal, prepare } from './decide/decide.ts'
import type { Outcome, Pending } from './decide/question.ts'
import type { ResponseHead } from './decide/settle.ts'
import { type CheckedRequest, type Circumstances, DecidedRequest } from './decided-request.ts'
import type { PathHandler } from './feature.ts'
import type { Matched } from './program/match.ts'
import { RequestView, type RuntimeContext } from './request/view.ts'
import { problem } from './respond/response.ts'

/**
 * Takes a request through view, match and decide. Returns a request at once if nothing had to be waited for.
 * @throws {ConfigError} if a policy needs the client address, and the configuration does not say where it comes from
 */
export function checkRequest(
  limiter: Limiter,
  request: Request,
  runtime: RuntimeContext,
): Soon<CheckedRequest> {
  const { config, readAddress, stages } = limiter
  const view = new RequestView(request, runtime, config, readAddress)
  // workerd passes each Host on, and makes the URL of it. With `a#` or `a/b` a router finds another path in that URL than a URL parser.
  if (!HOST.test(request.headers.get('host') ?? 'a')) return answered(badHost(), view)
  const answering = stages.handlers && handle(limiter, request, runtime)
  if (answering || stages.verify) return checkSpecial(limiter, view, runtime, answering)
  return match(limiter, view, runtime, undefined)
}

/** Also answers requests for paths of features, and recognizes those of `sluice verify`. */
async function checkSpecial(
  limiter: Limiter,
  view: RequestView,
  runtime: RuntimeContext,
  answering: Promise<Response | undefined> | undefined,
): Promise<CheckedRequest> {
  const answer = answering && (await answering)
  if (answer) return answered(answer, view)
  const verifying = limiter.stages.verify?.(view.request, view.env)
  return match(limiter, view, runtime, verifying && (await verifying))
}

function match(
  limiter: Limiter,
  view: RequestView,
  { closed }: RuntimeContext,
  verified: Circumstances['verified'],
): Soon<CheckedRequest> {
  let parts: Circumstances['parts']
  try {
    parts = limiter.partsOf(view.env)
  } catch (error) {
    if (!(error instanceof NotConfigured)) throw error
    limiter.log('unconfigured', '', error.message)
    return answered(unconfigured(error), view)
  }
  const rules = limiter.rulesOf(view)
  const startedAt = Date.now()
  const circumstances = { limiter, rules, parts, view, verified, closed, startedAt }
  let known: Outcome | undefined
  // Reads no body for a request that is refused without it.
  const matching = rules.match(view, (withoutBody) => {
    const marked = verified ? verified.mark(withoutBody) : withoutBody
    known = knownRefusal(marked, parts.denialCache)
    return known !== undefined
  })
  return matching instanceof Promise
    ? matching.then((found) => decideBy(circumstances, found, known))
    : decideBy(circumstances, matching, known)
}

function decideBy(
  circumstances: Circumstances,
  found: Matched,
  known: Outcome | undefined,
): Soon<CheckedRequest> {
  const { parts, verified } = circumstances
  const matched = verified ? verified.mark(found) : found
  const preparing = known ?? prepare({ matched }, parts)
  return preparing instanceof Promise
    ? preparing.then((prepared) => conclude(circumstances, matched, prepared))
    : conclude(circumstances, matched, preparing)
}

function conclude(
  circumstances: Circumstances,
  matched: Matched,
  prepared: Pending | Outcome,
): Soon<CheckedRequest> {
  if ('decision' in prepared) return new DecidedRequest(circumstances, matched, prepared)
  const { parts, view, closed, startedAt } = circumstances
  const { waitUntil, request } = view
  const spentMs = Math.max(0, Date.now() - startedAt)
  const deciding = decide(prepared, parts, { spentMs, waitUntil, request, closed })
  // Keeps the call alive if the client disconnects before the decision, so that its charge is settled.
  if (prepared.settles) waitUntil(deciding)
  return deciding.then((outcome) => new DecidedRequest(circumstances, matched, outcome))
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

/** The answer without a database. It names variables, and not their values. */
export const unconfigured = ({ message }: ConfigError): Response =>
  problem(500, { title: 'Not configured', detail: message })

/** The answer to a request whose `Host` is none. */
export const badHost = (): Response =>
  problem(400, { title: 'Bad Request', detail: 'The Host of the request is invalid.' })

/** A request that no policy applies to, because a feature has answered it. */
const answered = (answer: Response, view: RequestView): CheckedRequest => ({
  decision: { allowed: true, reason: 'no-policy', retryAfterMs: 0, limits: [] },
  view,
  passes: false,
  refuse: () => answer,
  isRead: false,
  finish: (response) => response,
  withFields: (response) => response,
  settle: () => {},
})

/** The response of a handler that throws. */
export const failed = (): ResponseHead => ({ status: 500, headers: new Headers() })

/**
 * Takes one request through all steps. Rejects only if `respond` rejects.
 * @param respond makes the response to an admitted request
 */
export async function limitRequest(
  limiter: Limiter,
  request: Request,
  runtime: RuntimeContext,
  respond: (checked: CheckedRequest) => Response | Promise<Response>,
): Promise<Response> {
  const checked = await checkRequest(limiter, request, runtime)
  if (!checked.passes) return checked.refuse()
  let response: Response
  try {
    response = await respond(checked)
  } catch (error) {
    // Hono itself answers each `Error` of a handler, so only other values arrive here.
    checked.settle(failed())
    throw error
  }
  return checked.finish(response)
}
