import type { Context } from 'hono'
import type { RuntimeContext } from '../../core/base/runtime.ts'
import { variablesFor } from '../../core/base/variables.ts'

/** The objects that server adapters of Hono hand over instead of a Worker's environment. */
interface ServerEnv {
  /** `@hono/node-server` */
  incoming?: { socket?: { remoteAddress?: string; destroyed?: boolean } }
  /** Bun's server */
  requestIP?: (request: Request) => { address: string } | null
  /** Deno's connection */
  remoteAddr?: { hostname?: string }
}

export function runtimeOf(c: Context): RuntimeContext {
  const { incoming, requestIP, remoteAddr } = (c.env ?? {}) as ServerEnv
  return {
    env: variablesFor(c.env),
    context: c,
    waitUntil: (promise) => keepAlive(c, promise),
    // If the server adapter reports it.
    remoteAddress:
      incoming?.socket?.remoteAddress ??
      requestIP?.call(c.env, c.req.raw)?.address ??
      remoteAddr?.hostname,
  }
}

/** True if the client has disconnected from `@hono/node-server`, which then does not know its address. */
export const hasLeft = ({ env }: Context): boolean =>
  (env as ServerEnv | undefined)?.incoming?.socket?.destroyed === true

/** Keeps the isolate alive until a promise settles. Outside of Workers there is nothing to keep alive. */
function keepAlive(c: Context, promise: Promise<unknown>) {
  try {
    c.executionCtx.waitUntil(promise)
  } catch {
    promise.catch(() => {})
  }
}
