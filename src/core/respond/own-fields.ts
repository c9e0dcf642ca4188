import type { Decision } from '../base/decision.ts'

/** CGI does not distinguish `_` from `-` (RFC 3875, 4.1.18), and PHP no other character that is no letter and no digit. */
const OWN = /^sluice[^a-z\d]/

/** True for the name of a `Sluice-*` field, in lower case. */
export const isOwn = (name: string): boolean => OWN.test(name)

/** Removes fields in one pass: few messages have any, and each deletion costs a microsecond. */
export function dropFields(headers: Headers, isDropped: (name: string) => boolean): void {
  for (const name of [...headers.keys()].filter(isDropped)) headers.delete(name)
}

/** Changes the fields of a response, or of a copy if it is immutable, as one of fetch is. `change` may be called twice. */
export function withChanged(response: Response, change: (headers: Headers) => void): Response {
  try {
    change(response.headers)
    return response
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    const copy = new Response(response.body, response)
    change(copy.headers)
    return copy
  }
}

/** `Sluice-Shadow`, a List of Strings (RFC 9651): the shadow policies that would have refused a request, whose names need no escaping. */
export function shadowField({ limits }: Decision): Record<string, string> {
  const refusing = limits.filter(({ mode, allowed }) => mode === 'shadow' && !allowed)
  const names = refusing.map(({ policy }) => `"${policy}"`).join(', ')
  return names ? { 'Sluice-Shadow': names } : {}
}
