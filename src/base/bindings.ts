/** What the limiter reads from the Worker's environment. */
export interface Bindings {
  /** The database's REST URL and token. Without them every decision is a store error. Those of several: `variablesOf`. */
  UPSTASH_REDIS_REST_URL?: string
  UPSTASH_REDIS_REST_TOKEN?: string
  /** The secret under which subjects are hashed. Defaults to the token, of several databases that of the first; Workers that share quotas have to share it. */
  SLUICE_SECRET?: string
  /** Tokens of the decision API's callers, at least 16 characters each, separated by spaces or commas. */
  SLUICE_API_TOKEN?: string
  /** Tokens of trusted proxies, likewise: a proxy that sends one in `Sluice-Token` may set the cost of a request (`cost.header`). */
  SLUICE_PROXY_TOKEN?: string
  /** Operators' tokens, likewise: who may peek at, reset, ban and unban a key. */
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

/** Whether a URL can be that of a REST API. A Redis URL (rediss://…) cannot, and the client would throw its password. */
export const isRestUrl = (url: string | undefined): url is string =>
  url !== undefined && /^https?:\/\//.test(url) && URL.canParse(url)
