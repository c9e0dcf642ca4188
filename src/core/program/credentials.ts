/** Verifies the credentials of a request for the conditions `jwt` and `apiKey`, before they are compared. */
import { needed } from '../base/needed.ts'
import { Unusable } from '../base/unusable.ts'
import type { Config } from '../config/parse.ts'
import { CREDENTIALS, readsCredential } from '../config/schema/reads.ts'
import type { RequestView } from '../request/view.ts'
import type { KeyReaders } from './key.ts'

/** Returns a function that adds to a view what the conditions of a configuration need; `undefined` if they need nothing. */
export function compileCredentials(
  { policies, allow, deny }: Pick<Config, 'policies' | 'allow' | 'deny'>,
  { claims, apiKey }: Pick<KeyReaders, 'claims' | 'apiKey'>,
): ((view: RequestView) => Promise<RequestView>) | undefined {
  const [jwt, key] = CREDENTIALS.map((field) => readsCredential([policies, allow, deny], field))
  if (!jwt && !key) return undefined
  const readKey = key ? needed(apiKey, 'apiKeys') : undefined
  const has = (found: unknown) => (found instanceof Unusable ? undefined : found !== undefined)
  return async (view) => {
    const [token, known] = await Promise.all([jwt && claims(view), readKey?.(view)])
    return view.with({ jwt: has(token), apiKey: has(known) })
  }
}
