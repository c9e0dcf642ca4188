import type { Bindings } from '../base/bindings.ts'
import { sha256 } from '../base/digest.ts'
import { holds, tokensIn } from '../credentials/trusted-token.ts'
import { problem } from '../http/response.ts'

/** What a token opens: decisions, or the work on keys and policies. */
export type Scope = 'api' | 'operate'

const variables = {
  api: 'SLUICE_API_TOKEN',
  operate: 'SLUICE_OPERATE_TOKEN',
} as const satisfies Record<Scope, keyof Bindings>

/** Whether anybody could use what is behind a scope: without a token it does not exist. */
export const isOpen = (scope: Scope, env: Record<string, unknown>): boolean =>
  tokensIn(env[variables[scope]]).length > 0

/** Who calls. */
export interface Caller {
  /** Tells callers apart, and says nothing of the token. */
  id: string
}

/** Who calls, by their token; or why they are turned away: 401 without one of the tokens, 403 where theirs opens something else. */
export async function callerOf(
  said: string | null,
  scopes: Scope[],
  env: Record<string, unknown>,
): Promise<Caller | Response> {
  const scopesOf = async (scope: Scope) => holds(said, env[variables[scope]])
  const [api, operate] = await Promise.all([scopesOf('api'), scopesOf('operate')])
  if ((api && scopes.includes('api')) || (operate && scopes.includes('operate'))) {
    return { id: (await sha256(said!)).slice(0, 32) }
  }
  if (api || operate) {
    return problem(403, {
      title: 'Forbidden',
      detail: `This token is not one of ${scopes.map((scope) => variables[scope]).join(' or ')}.`,
    })
  }
  return problem(
    401,
    {
      title: 'Unauthorized',
      detail: said ? 'The token is not known here.' : 'Send a token: Authorization: Bearer …',
    },
    { 'WWW-Authenticate': 'Bearer' },
  )
}

/** The token of a call: in `Sluice-Token`, else as the bearer token (RFC 6750, 2.1). */
export function tokenOf({ headers }: Request): string | null {
  return (
    headers.get('sluice-token') ??
    /^bearer +(\S+)$/i.exec(headers.get('authorization') ?? '')?.[1] ??
    null
  )
}
