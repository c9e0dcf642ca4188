/** What the limiter reads from the Worker's environment. */
export interface Bindings {
  /** The database's REST URL and token. Without them every decision is a store error. Those of several: `variablesOf`. */
  UPSTASH_REDIS_REST_URL?: string
  UPSTASH_REDIS_REST_TOKEN?: string
  /** The secret under which subjects are hashed. Defaults to the token, of several databases that of the first; Workers that share quotas have to share it. */
  SLUICE_SECRET?: string
  /** The gate's tokens, between spaces or commas, at least 16 characters each: who may ask for decisions, and whose word on a request is believed. */
  SLUICE_GATE_TOKEN?: string
  /** Operators' tokens, likewise: who may look at, reset, ban and unban a key. */
  SLUICE_OPERATE_TOKEN?: string
}

/** The variables of a database: of one of several, those that end in its name, such as `UPSTASH_REDIS_REST_URL_EU_1` of `eu-1`. */
export function variablesOf(store: string | undefined): { url: string; token: string } {
  const suffix = store === undefined ? '' : `_${store.replaceAll('-', '_').toUpperCase()}`
  return { url: `UPSTASH_REDIS_REST_URL${suffix}`, token: `UPSTASH_REDIS_REST_TOKEN${suffix}` }
}

/** URL and token of a database, as they stand there. */
export function credentialsOf(env: object, store: string | undefined) {
  const { url, token } = variablesOf(store)
  const variables = env as Record<string, string | undefined>
  return { url: variables[url], token: variables[token] }
}
