/** True on Cloudflare Workers and in workerd. There `CF-Connecting-IP` cannot be forged. */
export function isCloudflare(): boolean {
  const { navigator } = globalThis as { navigator?: { userAgent?: string } }
  return navigator?.userAgent === 'Cloudflare-Workers'
}
