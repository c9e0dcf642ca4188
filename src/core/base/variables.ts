import { isCloudflare } from './runtime.ts'

const isOnCloudflare = isCloudflare()

const { process } = globalThis as { process?: { env?: object } }

/** The variables of the process. A prototype, and not a copy: Deno asks for a permission for each variable that is read. */
const ofProcess = { __proto__: isOnCloudflare ? undefined : process?.env }

/**
 * The variables and bindings for a request: those that the runtime hands over, and outside of Workers also those of the process.
 * @param given the environment of a Worker, or the object that a server adapter hands over in its place
 */
export function variablesFor(given: object = ofProcess): Record<string, unknown> {
  const isComplete =
    isOnCloudflare ||
    given === ofProcess ||
    'UPSTASH_REDIS_REST_URL' in given ||
    'KV_REST_API_URL' in given
  return (isComplete ? given : { __proto__: ofProcess, ...given }) as Record<string, unknown>
}
