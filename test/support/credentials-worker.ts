/** A Worker that is only the reading of credentials: it answers with the subject of the token, or with nothing. */

import { createLog } from '../../src/base/log.ts'
import { parseConfig } from '../../src/config/parse.ts'
import { createApiKey } from '../../src/credentials/api-key.ts'
import { type Claims, createClaims } from '../../src/credentials/jwt.ts'
import { isTrustedProxy } from '../../src/credentials/trusted-token.ts'
import { Unusable } from '../../src/request/source.ts'
import { viewOf } from '../../src/request/view.ts'

interface Env {
  JWT: string
  DEADLINE_MS: string
  /** How much faster than time the clock runs. */
  SPEED?: string
  /** After so long the Worker forgets its keys: cold again, with code that is warm. */
  FORGET_MS?: string
}

let claims: Claims | undefined
let since = 0
let apiKey: ReturnType<typeof createApiKey>

export default {
  async fetch(request: Request, env: Env, context: { waitUntil(promise: Promise<unknown>): void }) {
    if (!claims || Date.now() - since >= Number(env.FORGET_MS ?? Number.POSITIVE_INFINITY)) {
      since = Date.now()
      const { jwt, apiKeys } = parseConfig({ policies: [], jwt: JSON.parse(env.JWT) })
      const log = createLog()
      const start = Date.now()
      const clock = () => start + (Date.now() - start) * Number(env.SPEED ?? 1)
      claims = createClaims(jwt!, { deadlineMs: Number(env.DEADLINE_MS), log, clock })
      apiKey = createApiKey(apiKeys, log)
    }
    const waitUntil = (promise: Promise<unknown>) => context.waitUntil(promise)
    const seen = viewOf(
      request,
      { env: { ...env }, waitUntil, context: undefined },
      { caseSensitivePaths: false },
    )
    // As several policies of one request would.
    const [one, other, key, api] = await Promise.all([
      claims(seen),
      claims(seen),
      apiKey(seen),
      isTrustedProxy(seen),
    ])
    return Response.json({
      sub: one instanceof Unusable ? null : (one?.sub ?? null),
      same: one === other,
      key: key instanceof Unusable ? null : (key ?? null),
      api,
    })
  },
}
