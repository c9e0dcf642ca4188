import type { Feature, PathHandler } from '../../core/feature.ts'
import { tokensIn } from '../../core/request/trusted-token.ts'
import { jsonAnswer, problem } from '../../core/respond/response.ts'
import { claimOf, FIELD, isCurrent } from './field.ts'
import { report } from './report.ts'
import { createAllowance, verifiedBy } from './verified.ts'

export type { VerifyReport } from './report.ts'
export type { VerifiedDecision } from './verified.ts'

const VARIABLE = 'SLUICE_VERIFY_TOKEN'

/**
 * Lets `npx sluice verify` prove that a deployment limits. Its requests are signed with a token of the variable `SLUICE_VERIFY_TOKEN`. They
 * have counters of their own, so they use nobody's quota. Without the variable, and for any other request, nothing changes.
 * `createGateway` has this feature by default.
 * @example
 * rateLimiter({ policies: [{ name: 'per-ip', limit: 100, window: '1m' }], use: [verify()] })
 */
export function verify(): Feature {
  const allowance = createAllowance()

  const handler: PathHandler = async (path, request, runtime, limiter) => {
    const tokens = tokensIn(runtime.env[VARIABLE])
    if (path !== '/_sluice/v1/verify' || tokens.length === 0) return undefined
    if (request.method !== 'GET')
      return problem(405, { title: 'Method Not Allowed' }, { Allow: 'GET' })
    const claim = await claimOf(request.headers.get(FIELD) ?? '', tokens)
    const now = Date.now()
    if (!claim) {
      const detail = `The field Sluice-Verify is not signed with a token of ${VARIABLE}.`
      return problem(401, { title: 'Unauthorized', detail })
    }
    if (!isCurrent(claim, now)) {
      const detail = 'The signature is of another time. The field now has the time of this server.'
      return problem(401, { title: 'Unauthorized', detail, now })
    }
    if (!allowance.takes(now)) {
      const detail = 'This isolate has verified too many requests.'
      return problem(429, { title: 'Too Many Requests', detail }, { 'Retry-After': '60' })
    }
    return jsonAnswer(await report(limiter, runtime, claim))
  }

  async function recognize(field: string, env: Record<string, unknown>) {
    const claim = await claimOf(field, tokensIn(env[VARIABLE]))
    const now = Date.now()
    return claim && isCurrent(claim, now) && allowance.takes(now) ? verifiedBy(claim) : undefined
  }

  return {
    name: 'verify',
    compile: () => ({
      handlers: [handler],
      verify(request, env) {
        const field = request.headers.get(FIELD)
        return field ? recognize(field, env) : undefined
      },
    }),
  }
}
