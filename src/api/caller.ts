import type { Bindings } from '../core/base/bindings.ts'
import { sha256 } from '../core/base/digest.ts'
import type { Scope } from '../core/endpoint.ts'
import { holds, tokensIn } from '../core/request/trusted-token.ts'
import { problem } from '../core/respond/response.ts'

const variables = {
  api: 'SLUICE_API_TOKEN',
  operate: 'SLUICE_OPERATE_TOKEN',
} as const satisfies Record<Scope, keyof Bindings>

/** True if the environment has a token of a scope. Without one, the endpoints of the scope do not exist. */
export const isOpen = (scope: Scope, env: Record<string, unknown>): boolean =>
  tokensIn(env[variables[scope]]).length > 0

/**
 * Names a caller by a digest of its token. Returns a problem otherwise: 401 for an unknown or missing token, 403 for a token of another scope.
 * @param forClients that of the endpoint
 */
export async function callerOf(
  token: string | null,
  scopes: Scope[],
  env: Record<string, unknown>,
  forClients?: boolean,
): Promise<string | Response> {
  const hasScope = async (scope: Scope) => holds(token, env[variables[scope]])
  const [api, operate] = await Promise.all([hasScope('api'), hasScope('operate')])
  if ((api && scopes.includes('api')) || (operate && scopes.includes('operate')))
    return (await sha256(token!)).slice(0, 32)
  if (api || operate) {
    const names = scopes.map((scope) => variables[scope]).join(' or ')
    return problem(403, { title: 'Forbidden', detail: `This endpoint needs a token of ${names}.` })
  }
  const detail = token
    ? 'The token is not valid.'
    : `Send a token in the field Sluice-Token${forClients ? '' : ', or as Authorization: Bearer …'}.`
  return problem(401, { title: 'Unauthorized', detail }, { 'WWW-Authenticate': 'Bearer' })
}

/** Returns the token of a call: `Sluice-Token`, or else the bearer token (RFC 6750, 2.1). */
export function tokenOf({ headers }: Request): string | null {
  return (
    headers.get('sluice-token') ??
    /^bearer +(\S+)$/i.exec(headers.get('authorization') ?? '')?.[1] ??
    null
  )
}
