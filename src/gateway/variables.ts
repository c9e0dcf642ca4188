import { isCloudflare } from '../request/client-address.ts'

/** The variables of the process, copied once: reading them is slow in Node. Workers have bindings instead. */
let ofProcess: Record<string, unknown> | undefined

/**
 * The variables and bindings for a request: those that the runtime hands over, and outside of Workers also those of the process.
 * @param given the environment of a Worker, or the object that a server adapter hands over in its place
 */
export function variablesFor(given: unknown): Record<string, unknown> {
  const { process } = globalThis as { process?: { env?: Record<string, unknown> } }
  if (isCloudflare() || !process?.env) return (given ?? {}) as Record<string, unknown>
  ofProcess ??= { ...process.env }
  return { ...ofProcess, ...(given as object | undefined) }
}
