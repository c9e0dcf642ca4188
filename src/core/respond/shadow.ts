import type { Decision } from '../base/decision.ts'

/** Returns the names of the shadow policies that would have refused a request. */
export const wouldRefuse = ({ limits }: Decision): string[] =>
  limits.filter(({ mode, allowed }) => mode === 'shadow' && !allowed).map(({ policy }) => policy)

/** Returns the `Sluice-Shadow` field, a List of Strings (RFC 9651), or no field for no policy. Policy names need no escaping. */
export const shadowField = (policies: string[]): Record<string, string> =>
  policies.length > 0 ? { 'Sluice-Shadow': policies.map((name) => `"${name}"`).join(', ') } : {}
