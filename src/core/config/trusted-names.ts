/** Reports whether an entry of `trustedProxies` is a name, which the feature proxies knows. No address is a word. */
export const isNetworkName = (entry: string) => /^[a-z]+$/.test(entry)

/** The names of networks in a parsed `clientAddress`, each with its path. */
export function trustedNames(setting: unknown): [name: string, path: string[]][] {
  const { forwardedFor, trustedProxies } = Object(setting)
  const trusted: unknown = forwardedFor ? forwardedFor.trustedProxies : trustedProxies
  if (!Array.isArray(trusted)) return []
  const path = ['clientAddress', ...(forwardedFor ? ['forwardedFor'] : []), 'trustedProxies']
  return trusted.filter(isNetworkName).map((name) => [name, path])
}
