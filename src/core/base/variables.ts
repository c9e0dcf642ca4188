import { isCloudflare } from './runtime.ts'

/**
 * The variables and bindings for a request: those that the runtime hands over, and outside of Workers also those of the process.
 * @param given the environment of a Worker, or the object that a server adapter hands over in its place
 */
export function variablesFor(given: object = {}): Record<string, unknown> {
  const isComplete =
    isOnCloudflare || 'UPSTASH_REDIS_REST_URL' in given || 'KV_REST_API_URL' in given
  if (isComplete) return given as Record<string, unknown>
  const { process } = globalThis as { process?: { env?: object } }
  // A prototype, and not a copy: Deno asks for a permission for each variable that is read.
  return { __proto__: process?.env, ...given } as object as Record<string, unknown>
}

const isOnCloudflare = isCloudflare()
