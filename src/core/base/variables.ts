import { isCloudflare } from './runtime.ts'

const isOnCloudflare = isCloudflare()

// In workerd the first look at `process` loads 28 modules of Node: a seventh of a cold start.
const { process } = (isOnCloudflare ? {} : globalThis) as { process?: { env?: object } }

let known: object | undefined
let ofProcess = {}

/** The variables of the process. A prototype, and not a copy: Deno asks for a permission for each variable that is read. */
function variablesOfProcess(): object {
  const env = process?.env
  // A test may replace them.
  if (env !== known) ofProcess = { __proto__: env }
  known = env
  return ofProcess
}

/**
 * The variables and bindings for a request; outside of Workers also those of the process.
 * @param given the environment of a Worker, or the object that a server adapter hands over in its place
 */
export function variablesFor(given?: object): Record<string, unknown> {
  const own = variablesOfProcess()
  if (given === undefined || given === own) return own as Record<string, unknown>
  const isComplete =
    isOnCloudflare || 'UPSTASH_REDIS_REST_URL' in given || 'KV_REST_API_URL' in given
  return (isComplete ? given : { __proto__: own, ...given }) as Record<string, unknown>
}
