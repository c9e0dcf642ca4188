import { isCloudflare } from '../request/client-address.ts'

/**
 * The variables and bindings for a request: those that the runtime hands over, and outside of Workers also those of the process.
 * @param given the environment of a Worker, or the object that a server adapter hands over in its place
 */
export function variablesFor(given: object = {}): Record<string, unknown> {
  const { process } = globalThis as { process?: { env?: object } }
  const isComplete = isCloudflare() || 'UPSTASH_REDIS_REST_URL' in given
  return (isComplete ? given : { ...process?.env, ...given }) as Record<string, unknown>
}
