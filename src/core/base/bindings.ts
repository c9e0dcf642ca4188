import type { ConfigProblem } from './errors.ts'

/** The variables and secrets that the limiter reads from the Worker's environment. */
export interface Bindings {
  /** REST URL and token of the database. Without them every decision is a store error. */
  UPSTASH_REDIS_REST_URL?: string
  UPSTASH_REDIS_REST_TOKEN?: string
  /** The names of Vercel's integration. They are read without the two above. */
  KV_REST_API_URL?: string
  KV_REST_API_TOKEN?: string
  /** Key of the HMAC that hashes subjects. Defaults to the database token. Workers that share quotas must use the same value. */
  SLUICE_SECRET?: string
  /** Tokens of the decision API's callers, at least 16 characters each, separated by spaces or commas. */
  SLUICE_API_TOKEN?: string
  /** Tokens of trusted proxies, in the same format. A proxy that sends one in `Sluice-Token` may set the cost of a request (`cost.header`). */
  SLUICE_PROXY_TOKEN?: string
  /** Tokens of operators, in the same format. An operator may peek at, reset, ban and unban a key. */
  SLUICE_OPERATE_TOKEN?: string
  /** Tokens of `sluice verify`, in the same format. They sign requests that have counters of their own (`verify()`). */
  SLUICE_VERIFY_TOKEN?: string
  /** Secret that signs near-limit notices: `whsec_` and base64, or plain text. Several with `whsec_` are separated by spaces. */
  SLUICE_WEBHOOK_SECRET?: string
  /** `true` in `sluice dev`: the counts name clients by the values of their keys, as `observe({ subjects: 'plain' })` does. */
  SLUICE_DEV?: string
}

const OWN = { url: 'UPSTASH_REDIS_REST_URL', token: 'UPSTASH_REDIS_REST_TOKEN' }
const VERCEL = { url: 'KV_REST_API_URL', token: 'KV_REST_API_TOKEN' }

/** The value of a variable. Deno throws without the permission for it. */
export function valueIn(env: object, name: string): string | undefined {
  try {
    return (env as Record<string, string | undefined>)[name]
  } catch {
    return undefined
  }
}

/** Names of the variables that an environment has for the database: our own, or else both of Vercel. */
export function variablesIn(env: object): { url: string; token: string } {
  const isSet = ({ url, token }: typeof OWN) => valueIn(env, url) || valueIn(env, token)
  return !isSet(OWN) && isSet(VERCEL) ? VERCEL : OWN
}

/** URL and token of the database, unchecked. */
export function credentialsOf(env: object) {
  const { url, token } = variablesIn(env)
  const variables = env as Record<string, string | undefined>
  return { url: variables[url], token: variables[token] }
}

/** Reports whether a URL can be that of a REST API. A Redis URL (`rediss://…`) cannot: the client would put its password into an exception. */
export const isRestUrl = (url: string | undefined): url is string =>
  url !== undefined && /^https?:\/\//.test(url) && URL.canParse(url)

export const isQuoted = (value: string) => /^["'`]/.test(value)

/** Describes the value of a variable. It shows only the scheme of a URL, because the URL of a Redis contains a password. */
export function foundIn(value: string | undefined): Pick<ConfigProblem, 'got' | 'hint'> {
  if (!value) return { got: 'nothing' }
  if (isQuoted(value))
    return { got: 'a value in quotes', hint: 'Remove the quotes: docker --env-file keeps them.' }
  const scheme = /^[a-z]{1,8}:\/\//i.exec(value)?.[0] ?? 'no scheme'
  const got = `a value that begins with ${scheme}`
  if (!/^rediss?:/i.test(scheme)) return { got }
  const hint =
    'On Node, Bun and Deno name it REDIS_URL. For a Worker let npx sluice bridge --redis URL serve it over HTTP.'
  return { got, hint }
}
