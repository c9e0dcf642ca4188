/** A Worker that only reads credentials. It answers with the subject of the token, or with null. */

import { createLog } from '../../src/core/base/log.ts'
import { Unusable } from '../../src/core/base/part.ts'
import { parseConfig } from '../../src/core/config/parse.ts'
import { createApiKey } from '../../src/core/request/api-key.ts'
import { isTrustedProxy } from '../../src/core/request/trusted-token.ts'
import type { Claims } from '../../src/core/request/view.ts'
import { createClaims } from '../../src/features/jwt/claims.ts'
import { parseOptions } from '../../src/features/jwt/options.ts'
import { viewOnCloudflare } from '../support/view-on-cloudflare.ts'

interface Env {
  JWT: string
  DEADLINE_MS: string
  /** The factor by which the clock runs faster than real time. Defaults to 1. */
  SPEED?: string
  /** The Worker forgets its keys after this time: a cold start with warm code. */
  FORGET_MS?: string
}

/** The number of requests that have waited for the keys: each has set a timer. */
let waits = 0
const { setTimeout } = globalThis
globalThis.setTimeout = ((run: () => void, ms: number) => {
  waits += 1
  return setTimeout(run, ms)
}) as typeof setTimeout

let claims: Claims | undefined
let since = 0
let apiKey: ReturnType<typeof createApiKey>

export default {
  async fetch(request: Request, env: Env, context: { waitUntil(promise: Promise<unknown>): void }) {
    if (!claims || Date.now() - since >= Number(env.FORGET_MS ?? Number.POSITIVE_INFINITY)) {
      since = Date.now()
      const { apiKeys } = parseConfig({ policies: [] })
      const log = createLog()
      const start = Date.now()
      const clock = () => start + (Date.now() - start) * Number(env.SPEED ?? 1)
      claims = createClaims(parseOptions(JSON.parse(env.JWT)), {
        deadlineMs: Number(env.DEADLINE_MS),
        log,
        clock,
      })
      apiKey = createApiKey(apiKeys, log)
    }
    const waitUntil = (promise: Promise<unknown>) => context.waitUntil(promise)
    const view = viewOnCloudflare(
      request,
      { env: { ...env }, waitUntil, context: undefined },
      { caseSensitivePaths: false },
    )
    // Two reads, as two policies of one request make them.
    const [first, second, key, api] = await Promise.all([
      claims(view),
      claims(view),
      apiKey(view),
      isTrustedProxy(view),
    ])
    return Response.json({
      sub: first instanceof Unusable ? null : (first?.sub ?? null),
      same: first === second,
      key: key instanceof Unusable ? null : (key ?? null),
      api,
      waits,
    })
  },
}
