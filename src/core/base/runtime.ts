/** The context that the runtime provides with a request. */
export interface RuntimeContext {
  /** Variables and secrets. */
  env: Record<string, unknown>
  /** Keeps the isolate active until the promise settles, also after the response is sent. */
  waitUntil: (promise: Promise<unknown>) => void
  /** Hono's context, for key functions. */
  context: unknown
  /** The address of the connection, where the runtime reports it. */
  remoteAddress?: string | undefined
  /** Resolves when the client has gone, where the request has no signal for it. */
  closed?: Promise<unknown> | undefined
}

/** Keeps nothing alive, for a runtime that lives on by itself. A rejection is handled where it happens. */
export const keepNothing = (promise: Promise<unknown>) => void promise.catch(() => {})

/** True on Cloudflare Workers and in workerd. There `CF-Connecting-IP` cannot be forged. */
export function isCloudflare(): boolean {
  const { navigator } = globalThis as { navigator?: { userAgent?: string } }
  return navigator?.userAgent === 'Cloudflare-Workers'
}

/** The `waitUntil` of a call that has none: with it calls are shared, which in Workers would outlive their requests. */
export const sharing = isCloudflare() ? undefined : keepNothing
