import type { RuntimeContext } from '../core/base/runtime.ts'
import type { Limiter } from '../core/create.ts'
import { type MissingPart, missingParts } from '../core/decide/database.ts'
import { jsonAnswer } from '../core/respond/response.ts'
import { callerOf, tokenOf } from './caller.ts'

/** A reason why the Worker cannot decide or forward requests. Contains names of variables, never their values. */
interface HealthProblem extends MissingPart {
  code: 'not-configured' | 'no-origin' | 'circuit-open'
  /** When the circuit opened, ms since the epoch. */
  since?: number
}

type Env = RuntimeContext['env']

/** Creates the handlers of `GET /_sluice/health` and `GET /_sluice/ready`. Neither calls the database without a token. */
export function createHealth({ config, log, rulesOf, partsOf }: Limiter) {
  /** @param noOrigin why requests cannot be forwarded, or `undefined` if they can */
  const misconfigured = (env: Env, noOrigin: string | undefined): HealthProblem[] => [
    ...missingParts(config, env).map((one) => ({ code: 'not-configured' as const, ...one })),
    ...(noOrigin ? [{ code: 'no-origin' as const, variable: 'ORIGIN', detail: noOrigin }] : []),
  ]

  return {
    health(env: Env, noOrigin: string | undefined): Response {
      return report('ok', 'misconfigured', misconfigured(env, noOrigin))
    },

    /** Like `health`, and 503 while a breaker of this isolate is open. Lists the policies for operators. */
    async ready(
      request: Request,
      runtime: Omit<RuntimeContext, 'context'>,
      noOrigin: string | undefined,
    ): Promise<Response> {
      const { env } = runtime
      const token = tokenOf(request)
      const caller = token === null ? undefined : await callerOf(token, ['operate'], env)
      if (caller instanceof Response) {
        log('api-refused', String(caller.status), 'a call of /ready had no valid token')
        return caller
      }
      const problems = misconfigured(env, noOrigin)
      const isConfigured = missingParts(config, env).length === 0
      const { openSince: since } = isConfigured ? partsOf(env).database.health() : {}
      if (since !== undefined) problems.push({ code: 'circuit-open', detail: IS_OPEN, since })
      const policies = caller
        ? rulesOf({ ...runtime, context: undefined }).config.policies
        : undefined
      const names = policies?.map(({ name }) => name)
      return report('ready', 'not-ready', problems, { policies: names })
    },
  }
}

const IS_OPEN = 'The database failed repeatedly. Until it answers again, onStoreError decides.'

function report(good: string, bad: string, problems: HealthProblem[], more: object = {}): Response {
  if (problems.length === 0) return jsonAnswer({ status: good, ...more })
  return jsonAnswer({ status: bad, problems, ...more }, {}, 503)
}
