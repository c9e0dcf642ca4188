/** What the limiter reads from the Worker's environment. */
export interface Bindings {
  /** The database's REST URL and token. Without them every decision is a store error. */
  UPSTASH_REDIS_REST_URL?: string
  UPSTASH_REDIS_REST_TOKEN?: string
  /** The secret under which subjects are hashed. Defaults to the token; Workers that share quotas have to share it. */
  SLUICE_SECRET?: string
  /** The gate's tokens, between spaces or commas, at least 16 characters each: who may ask for decisions, and whose word on a request is believed. */
  SLUICE_GATE_TOKEN?: string
  /** Operators' tokens, likewise: who may look at, reset, ban and unban a key. */
  SLUICE_OPERATE_TOKEN?: string
}
