/** The life of a request in four steps: view, match, decide, settle. */
import { ConfigError } from './base/errors.ts'
import { HOST } from './base/host.ts'
import type { RuntimeContext } from './base/runtime.ts'
import { type Soon, whenKnown } from './base/when-known.ts'
import type { Limiter } from './create.ts'
import { NotConfigured } from './decide/database.ts'
import { answer, knownRefusal } from './decide/decide.ts'
import type { Outcome } from './decide/question.ts'
import type { ResponseHead } from './decide/settle.ts'
import { type CheckedRequest, type Circumstances, DecidedRequest } from './decided-request.ts'
import type { PathHandler } from './feature.ts'
import { RequestView } from './request/view.ts'
import { problem } from './respond/response.ts'

/**
 * Takes a request through view, match and decide. Returns a request at once if nothing had to be waited for.
 * @throws {ConfigError} if a policy needs the client address, and the configuration does not say where it comes from
 */
export function checkRequest(limiter: Limiter, request: Request, runtime: RuntimeContext) {
  const { stages } = limiter
  // workerd passes each Host on, and makes the URL of it. With `a#` or `a/b` a router finds another path in that URL than a URL parser.
  if (!HOST.test(request.headers.get('host') ?? 'a'))
    return answered(badHost(), viewOf(limiter, request, runtime))
  return whenKnown(stages.handlers && handle(limiter, request, runtime), (own) =>
    own
      ? answered(own, viewOf(limiter, request, runtime))
      : whenKnown(stages.verify?.(request, runtime.env), (verified) =>
          match(limiter, request, runtime, verified),
        ),
  )
}

const viewOf = ({ config, readAddress }: Limiter, request: Request, runtime: RuntimeContext) =>
  new RequestView(request, runtime, config, readAddress)

function match(
  limiter: Limiter,
  request: Request,
  runtime: RuntimeContext,
  verified: Circumstances['verified'],
): Soon<CheckedRequest> {
  const { env, waitUntil, closed } = runtime
  let parts: Circumstances['parts']
  try {
    parts = limiter.partsOf(env)
  } catch (error) {
    if (!(error instanceof NotConfigured)) throw error
    limiter.log('unconfigured', '', error.message)
    return answered(unconfigured(error), viewOf(limiter, request, runtime))
  }
  const rules = limiter.rulesOf(runtime)
  const startedAt = Date.now()
  const view = viewOf(limiter, request, runtime)
  const given = { limiter, rules, parts, view, verified, startedAt, request, closed, waitUntil }
  let known: Outcome | undefined
  // Reads no body for a request that is refused without it.
  const matching = rules.match(view, (withoutBody) => {
    const marked = verified ? verified.mark(withoutBody) : withoutBody
    known = knownRefusal(marked, parts.denialCache)
    return known !== undefined
  })
  return whenKnown(matching, (found) => {
    const matched = verified ? verified.mark(found) : found
    const answering = known ?? answer({ matched }, parts, given)
    return whenKnown(answering, (outcome) => new DecidedRequest(given, matched, outcome))
  })
}

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

/** Takes a request through all steps. `respond` makes the response to an admitted one. Rejects only if it does. */
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
