import type { Config } from '../config/parse.ts'
import { problem, refusal, withDecisionFields } from '../http/response.ts'
import type { Limiter } from '../limiter/create.ts'
import { decideEach } from '../limiter/decide.ts'
import type { LimiterParts } from '../limiter/question.ts'
import type { Call } from './call.ts'
import { type Caller, callerOf, isOpen, type Scope, tokenOf } from './caller.ts'
import { decide } from './decide.ts'
import type { ApiRuntime } from './described-request.ts'
import { auth } from './forward-auth.ts'
import openapi from './openapi.json' with { type: 'json' }
import { operate } from './operate.ts'
import { listPolicies } from './policies.ts'
import { refund } from './refund.ts'

interface Endpoint {
  /** What follows `/_sluice/v1`; the group is the endpoint's own. */
  path: RegExp
  /** All, where it is missing. */
  methods?: string[]
  /** Whose token opens it. */
  scopes: Scope[]
  answer: (call: Call) => Promise<Response>
  /** Whether the token comes in `Sluice-Token` only, since `Authorization` is the client's. */
  clients?: true
}

const endpoints: Endpoint[] = [
  { path: /^\/decide()$/, methods: ['POST'], scopes: ['api'], answer: decide },
  { path: /^\/refund()$/, methods: ['POST'], scopes: ['api', 'operate'], answer: refund },
  { path: /^\/auth(|\/nginx|\/envoy(?:\/.*)?)$/s, scopes: ['api'], answer: auth, clients: true },
  { path: /^\/policies()$/, methods: ['GET'], scopes: ['operate'], answer: listPolicies },
  {
    path: /^\/policies\/([^/]+\/(?:peek|reset|ban|unban|try))$/,
    methods: ['POST'],
    scopes: ['operate'],
    answer: operate,
  },
]

/**
 * The decision API: decisions for those who cannot put their origin behind the Worker (docs/reference/decision-api.md). Without a token in the Worker's
 * environment none of it exists.
 * @returns `undefined` for paths that are not the decision API's
 */
export function createApi({ config, rulesOf, partsOf, log }: Limiter) {
  return async (
    request: Request,
    path: string,
    around: ApiRuntime,
  ): Promise<Response | undefined> => {
    const { env } = around
    const under = /^\/_sluice\/v1(\/.*)$/s.exec(path)?.[1]
    if (under === undefined) return undefined
    if (under === '/openapi.json' && (isOpen('api', env) || isOpen('operate', env))) {
      if (!['GET', 'HEAD'].includes(request.method)) return notAllowed(['GET'])
      return Response.json(openapi, { headers: { 'Cache-Control': 'no-store' } })
    }
    const endpoint = endpoints.find(({ path }) => path.test(under))
    if (!endpoint?.scopes.some((scope) => isOpen(scope, env))) return undefined
    const { methods, scopes, answer, clients } = endpoint
    if (request.method === 'OPTIONS' && methods && config.cors) return preflight(methods)
    if (methods && !methods.includes(request.method)) return notAllowed(methods)
    const token = clients ? request.headers.get('sluice-token') : tokenOf(request)
    const caller = await callerOf(token, scopes, env)
    if (caller instanceof Response) {
      log(
        'api-refused',
        String(caller.status),
        'a call of the decision API had no token that opens it',
      )
      return caller
    }
    const parts = partsOf(env)
    // A proxy asks for its clients, who have limits of their own.
    const began = Date.now()
    const late = clients ? undefined : await tooMany(caller, config, parts, around)
    if (late) return late
    return answer({
      request,
      caller,
      rest: endpoint.path.exec(under)![1]!,
      config,
      rules: rulesOf({ ...around, context: undefined }),
      parts,
      around,
      spentMs: Math.max(0, Date.now() - began),
    })
  }
}

const notAllowed = (methods: string[]): Response =>
  problem(405, { title: 'Method Not Allowed' }, { Allow: methods.join(', ') })

/** What a page of another origin may send (the Fetch standard's CORS protocol); whether it may at all, `cors` says. */
const preflight = (methods: string[]): Response =>
  new Response(null, {
    status: 204,
    headers: {
      'Access-Control-Allow-Methods': methods.join(', '),
      'Access-Control-Allow-Headers': 'Authorization, Content-Type, Idempotency-Key, Sluice-Token',
    },
  })

/** The refusal of a caller who calls more often than `api.callers` says; nothing where there is room, or nobody can tell. */
async function tooMany(
  { id }: Caller,
  { api, ...config }: Config,
  parts: LimiterParts,
  { waitUntil }: ApiRuntime,
): Promise<Response | undefined> {
  if (!api) return undefined
  const matched = {
    policies: [
      { policy: api.callers, partitionKey: [['caller', id] as [string, string]], cost: 1 },
    ],
  }
  const [outcome] = await decideEach([{ matched }], parts, { waitUntil })
  const { decision } = outcome!
  if (decision.allowed) return undefined
  return withDecisionFields(refusal(decision), decision, config, { own: true })
}
