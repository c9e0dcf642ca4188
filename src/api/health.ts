import { credentialsOf, isRestUrl, variablesOf } from '../base/bindings.ts'
import type { Limiter } from '../limiter/create.ts'
import type { RuntimeContext } from '../request/view.ts'
import { callerOf, tokenOf } from './caller.ts'

/** One reason why the Worker cannot decide requests, or cannot forward them. Holds names of variables, never values. */
export interface HealthProblem {
  code: 'not-configured' | 'no-origin' | 'circuit-open'
  /** The variable to set. */
  variable?: string
  /** Which database, where there are several. */
  store?: string | undefined
  detail: string
}

type Env = RuntimeContext['env']

/** Answers `GET /_sluice/health` and `GET /_sluice/ready`. Without a token neither calls a database. */
export function createHealth({ config, log, rulesOf, partsOf }: Limiter) {
  /** @param noOrigin why requests cannot be forwarded, or `undefined` where they can */
  function misconfigured(env: Env, noOrigin: string | undefined): HealthProblem[] {
    const shards = config.shards ?? [undefined]
    const problems = shards.flatMap((store) => lackingCredentials(env, store))
    if (noOrigin) problems.push({ code: 'no-origin', variable: 'ORIGIN', detail: noOrigin })
    return problems
  }

  return {
    health(env: Env, noOrigin: string | undefined): Response {
      return report('ok', 'misconfigured', misconfigured(env, noOrigin))
    },

    /** As `health`, and 503 while this isolate's breaker is open. Lists the policies for operators. */
    async ready(
      request: Request,
      around: Omit<RuntimeContext, 'context'>,
      noOrigin: string | undefined,
    ): Promise<Response> {
      const { env } = around
      const token = tokenOf(request)
      const caller = token === null ? undefined : await callerOf(token, ['operate'], env)
      if (caller instanceof Response) {
        log('api-refused', String(caller.status), 'a call of /ready had no token that opens it')
        return caller
      }
      const problems = misconfigured(env, noOrigin)
      for (const { name, isOpen } of partsOf(env).databases) {
        if (isOpen()) problems.push({ code: 'circuit-open', store: name, detail: IS_OPEN })
      }
      const policies = caller && rulesOf({ ...around, context: undefined }).config.policies
      return report('ready', 'not-ready', problems, {
        policies: policies?.map(({ name }) => name),
      })
    },
  }
}

const IS_OPEN = 'The database failed repeatedly. Policies answer without it for a moment.'

function lackingCredentials(env: Env, store: string | undefined): HealthProblem[] {
  const variables = variablesOf(store)
  const { url, token } = credentialsOf(env, store)
  const problems: HealthProblem[] = []
  const lacks = (variable: string, detail: string) =>
    problems.push({ code: 'not-configured', variable, detail })
  if (!isRestUrl(url)) {
    const example = 'https://eu1-name-12345.upstash.io'
    lacks(variables.url, `Set it to the REST URL of the database, such as "${example}".`)
  }
  if (!token) lacks(variables.token, 'Set it to the REST token of the database.')
  return problems
}

function report(good: string, bad: string, problems: HealthProblem[], more: object = {}): Response {
  const failed = problems.length > 0
  return Response.json(
    { status: failed ? bad : good, problems: failed ? problems : undefined, ...more },
    { status: failed ? 503 : 200, headers: { 'Cache-Control': 'no-store' } },
  )
}
