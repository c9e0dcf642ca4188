import type { Decision } from '../base/decision.ts'

/** The policies in shadow that would have refused a request. */
export const wouldRefuse = ({ limits }: Decision): string[] =>
  limits.filter(({ mode, allowed }) => mode === 'shadow' && !allowed).map(({ policy }) => policy)

/** The field that tells an origin of them: a List of Strings (RFC 9651); names of policies need no escaping. Nothing where there are none. */
export const shadowField = (policies: string[]): Record<string, string> =>
  policies.length > 0 ? { 'Sluice-Shadow': policies.map((name) => `"${name}"`).join(', ') } : {}
