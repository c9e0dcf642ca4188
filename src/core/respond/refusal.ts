/** The response to a refused request: that of a policy or of the configuration, or the default. */
import type { Decision, LimitState } from '../base/decision.ts'
import type { Log } from '../base/log.ts'
import type { Soon } from '../base/when-known.ts'
import type { Config } from '../config/parse.ts'
import type { ErrorFormat, RefusalOptions } from '../config/schema/refusal-fields.ts'
import { withChanged } from './own-fields.ts'
import { pageOf } from './page.ts'
import { leastShare } from './ratelimit-fields/sets.ts'
import { refusal, retryAfter } from './response.ts'

export interface Refused {
  decision: Decision
  /** The limit that refuses it for the longest time. */
  limit: LimitState | undefined
  request: Request
  /** The problem document, with all fields of a refusal. */
  standard: Response
}

/** A refusal in the error format of the protocol of a request. */
export interface ErrorBody {
  body: unknown
  /** The media type. */
  type: string
  /** True if the body answers the request, so that a client of the protocol reads it with any status. */
  isAnswer: boolean
}

/** Makes a refusal in an error format of the problem document. */
export type ErrorWriter = (
  format: ErrorFormat,
  request: Request,
  problem: Record<string, unknown>,
) => Promise<ErrorBody>

export interface RefusalStages {
  /** Changes the waits that a refused client is told. No wait may be shorter. */
  told?: (refused: Decision) => Decision
  /** Makes the response to a refused request that the configuration describes by an object. The caller adds the fields that every refusal has. */
  refuse?: (
    own: RefusalOptions,
    refused: Refused,
    errorBody: ErrorWriter | undefined,
  ) => Promise<Response>
  errorBody?: ErrorWriter
}

/**
 * Makes the response to a refused request, without the rate limit fields: that of the policy that refuses the request for the longest time,
 * else that of the configuration, else `standard`. A function answers only what is over a limit (429): one that writes a wait knows nothing of
 * an address on the list `deny`. If it throws or returns no refusal, the error is logged, and `standard` is returned.
 * @param contextOf makes the argument of a function
 */
export function refuse(
  decision: Decision,
  request: Request,
  { policies, refusal: ofAll }: Pick<Config, 'policies' | 'refusal'>,
  stages: RefusalStages,
  log: Log,
  contextOf: () => unknown,
  standard = refusal(decision),
): Soon<Response> {
  const limit = leastShare(decision)
  const { by, ...lacking } = decision.denied ?? {}
  // Only a policy lacks a key part. An entry of a list may have the name of a policy.
  const name = Object.keys(lacking).length > 0 ? by : limit?.policy
  const isOverLimit = standard.status === 429
  const ofPolicy = policies.find((policy) => policy.name === name)?.refusal
  const own = [ofPolicy, ofAll].find((one) => one && (isOverLimit || typeof one !== 'function'))
  if (!own) return standardFor(request, standard)
  const answering = async () => {
    try {
      const answer = await (typeof own === 'function'
        ? own(decision, await contextOf())
        : stages.refuse!(own, { decision, limit, request, standard }, stages.errorBody))
      // A client of JSON-RPC reads an error with the status 200.
      if (!(answer.status >= 400 || typeof own === 'object') || answer.bodyUsed)
        throw new TypeError()
      const fields = { ...retryAfter(decision), 'Cache-Control': 'no-store' }
      return withChanged(answer, (headers) => {
        for (const [name, value] of Object.entries(fields)) headers.set(name, value)
      })
    } catch (error) {
      const advice = 'a refusal function failed or returned no response of status 400 to 599'
      log('refusal-error', (error as Error)?.name ?? '', advice)
      return standardFor(request, standard)
    }
  }
  return answering()
}

/** The default, as a page for a browser: a client that names HTML, without a quality, and does not name JSON. */
function standardFor({ headers }: Request, standard: Response): Soon<Response> {
  const accept = headers.get('accept') ?? ''
  return /text\/html *(,|$)/i.test(accept) && !/json/i.test(accept) ? pageOf(standard) : standard
}
