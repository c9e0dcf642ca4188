/** Keeps nothing alive, for a runtime that lives on by itself. A rejection is handled where it happens. */
export const keepNothing = (promise: Promise<unknown>) => void promise.catch(() => {})

/** True on Cloudflare Workers and in workerd. There `CF-Connecting-IP` cannot be forged. */
export function isCloudflare(): boolean {
  const { navigator } = globalThis as { navigator?: { userAgent?: string } }
  return navigator?.userAgent === 'Cloudflare-Workers'
}

/** The `waitUntil` of a call that has none: with it calls are shared, which in Workers would outlive their requests. */
export const sharing = isCloudflare() ? undefined : keepNothing
