import { StoreError } from '../core/base/errors.ts'
import { needed } from '../core/base/needed.ts'
import type { Limiter } from '../core/create.ts'
import type { ApiRuntime, Call, Endpoint } from '../core/endpoint.ts'
import { preflight, withCors } from '../core/respond/cors.ts'
import { jsonAnswer, problem } from '../core/respond/response.ts'
import { policyIn } from './call.ts'
import { callerOf, isOpen, tokenOf } from './caller.ts'
import { decide } from './decide.ts'
import { auth } from './forward-auth.ts'
import { createHealth } from './health.ts'
import { keyConflict } from './idempotency.ts'
import { operate } from './operate.ts'
import { listPolicies } from './policies.ts'
import { noCounts, noList, noOverrides, storeFailed } from './problems.ts'
import { refund, settle } from './refund.ts'

/** The paths that have values of keys. They must not be decoded before they are split. */
export const KEYS = /^\/_sluice\/v1\/policies\/[^/]+\/keys\//

const SENT_FIELDS = 'Authorization, Content-Type, Idempotency-Key, Sluice-Token'

const endpoints: Endpoint[] = [
  { path: /^\/decide()$/, methods: ['POST'], scopes: ['api'], answer: decide },
  { path: /^\/refund()$/, methods: ['POST'], scopes: ['api', 'operate'], answer: refund },
  { path: /^\/settle()$/, methods: ['POST'], scopes: ['api', 'operate'], answer: settle },
  { path: /^\/auth(|\/nginx|\/envoy(?:\/.*)?)$/s, scopes: ['api'], answer: auth, forClients: true },
  { path: /^\/policies()$/, methods: ['GET'], scopes: ['operate'], answer: listPolicies },
  {
    path: /^\/policies\/([^/]+\/(?:peek|reset|ban|unban|try))$/,
    methods: ['POST'],
    scopes: ['operate'],
    answer: operate,
  },
]

const noLimits = async (call: Call) => noOverrides(policyIn(call))

/** Tell what a configuration lacks. If it has that, the endpoint of a feature is found first. */
const lacking = [
  { path: /^\/policies\/([^/]+)\/keys$/, methods: ['GET'], answer: noLimits },
  {
    path: /^\/policies\/([^/]+)\/keys\/[^/]+\/limit$/,
    methods: ['GET', 'PUT', 'DELETE'],
    answer: noLimits,
  },
  {
    path: /^\/policies\/([^/]+)\/bans$/,
    methods: ['GET'],
    answer: async (call: Call) => noList(policyIn(call)),
  },
  {
    path: /^\/(?:stats|metrics)()$/,
    methods: ['GET', 'HEAD'],
    answer: async () => noCounts(),
  },
].map((one): Endpoint => ({ ...one, scopes: ['operate'] }))

/**
 * Creates the router of the paths under `/_sluice/`: health, readiness and the decision API (docs/reference/decision-api.md), whose
 * endpoints exist only if the environment has a token for them. Each answer has the fields that let pages of another origin read it.
 * @param openapi the answer of `GET /openapi.json`; without it the path does not exist
 * @returns `undefined` for other paths
 */
export function createRouter(limiter: Limiter, openapi?: object) {
  const { config, rulesOf, partsOf, log, stages } = limiter
  const { health, ready } = createHealth(limiter)
  const { endpoints: others = [] } = stages
  const all = [...endpoints, ...others, ...lacking]
  const hasKeys = others.find(({ path }) => path.test('/policies/a/keys'))
  if (config.policies.some(({ overrides }) => overrides)) needed(hasKeys, 'keyLimits')

  async function api(
    request: Request,
    path: string,
    runtime: ApiRuntime,
  ): Promise<Response | undefined> {
    const { env } = runtime
    const under = /^\/_sluice\/v1(\/.*)$/s.exec(path)?.[1]
    if (under === undefined) return undefined
    if (openapi && under === '/openapi.json' && (isOpen('api', env) || isOpen('operate', env))) {
      if (!['GET', 'HEAD'].includes(request.method)) return notAllowed(['GET'])
      return jsonAnswer(openapi)
    }
    const endpoint = all.find(({ path }) => path.test(under))
    if (!endpoint?.scopes.some((scope) => isOpen(scope, env))) return undefined
    const { methods, scopes, answer, forClients } = endpoint
    if (request.method === 'OPTIONS' && methods && config.cors)
      return preflight(methods.join(', '), SENT_FIELDS)
    if (methods && !methods.includes(request.method)) return notAllowed(methods)
    const token = forClients ? request.headers.get('sluice-token') : tokenOf(request)
    const caller = await callerOf(token, scopes, env, forClients)
    if (caller instanceof Response) {
      log('api-refused', String(caller.status), 'a call of the decision API had no valid token')
      return caller
    }
    const answering = answer({
      request,
      caller,
      rest: endpoint.path.exec(under)![1]!,
      config,
      rules: rulesOf({ ...runtime, context: undefined }),
      parts: partsOf(env),
      runtime,
      log,
      stages,
    })
    return answering.catch(failedBy)
  }

  /** @param missingOrigin returns why requests cannot be forwarded. Defaults to no reason */
  return async (
    request: Request,
    path: string,
    runtime: ApiRuntime,
    missingOrigin: () => string | undefined = () => undefined,
  ): Promise<Response | undefined> => {
    const isRead = request.method === 'GET' || request.method === 'HEAD'
    const answer =
      isRead && path === '/_sluice/health'
        ? health(runtime.env, missingOrigin())
        : isRead && path === '/_sluice/ready'
          ? await ready(request, runtime, missingOrigin())
          : await api(request, path, runtime)
    return answer && withCors(answer, config, request.headers.get('origin'))
  }
}

/** The answer that an endpoint has thrown, or that of one that the store has failed. */
function failedBy(error: unknown): Response {
  if (error instanceof Response) return error
  if (!(error instanceof StoreError)) throw error
  return error.code === 'idempotency-conflict' ? keyConflict() : storeFailed(error)
}

const notAllowed = (methods: string[]): Response =>
  problem(405, { title: 'Method Not Allowed' }, { Allow: methods.join(', ') })
