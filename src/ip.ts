import ipaddr from 'ipaddr.js'

/**
 * The network that an address counts as: IPv4 by its first `v4` bits, IPv6 by its first `v6`, v4-mapped addresses
 * (RFC 4291, 2.5.5.2) as IPv4. Whole IPv4 addresses are written without the `/32`.
 * @returns `undefined` where the text is no address
 */
export function network(text: string, v4: number, v6: number): string | undefined {
  if (!ipaddr.isValid(text)) return undefined
  const address = ipaddr.process(text)
  const bits = address.kind() === 'ipv4' ? v4 : v6
  if (bits === 32 && address.kind() === 'ipv4') return address.toString()
  const bytes = address.toByteArray().map((byte, index) => {
    const kept = Math.min(8, Math.max(0, bits - index * 8))
    return byte & (0xff << (8 - kept))
  })
  return `${ipaddr.fromByteArray(bytes).toString()}/${bits}`
}
