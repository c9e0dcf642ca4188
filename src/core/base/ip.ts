/** The bytes of an address: 4 for IPv4, 16 for IPv6. */
export type Address = readonly number[] & {
  /** The IPv6 address that an IPv4 address was embedded in, unless it was IPv4-mapped. Lists may name either. */
  outer?: Address
}

/** IPv4-mapped addresses (RFC 4291, 2.5.5.2). Sockets write IPv4 in this form. */
const MAPPED = /^0{20}f{4}/

/**
 * The addresses, in hex, whose standard says where they have the IPv4 address that packets to them are sent to, at the end: IPv4-compatible
 * ones (RFC 4291, 2.5.5.1), which `::` and `::1` are not; IPv4-translated ones (RFC 2765, 2.1); and those of NAT64 with the well-known prefix
 * (RFC 6052, 2.1) or a /96 of the local one (RFC 8215).
 */
const ENDS_WITH_V4 = /^(0{24}(?!00)|0{16}f{4}0000|0064ff9b(0{16}|0001.{4}0{8}))/

/** The IPv4 address of a client in its IPv6 address. A host chooses that of ISATAP freely, and a NAT64 prefix of an operator is not known. */
function embedded(address: Address, hex: string): number[] | undefined {
  if (ENDS_WITH_V4.test(hex)) return address.slice(12)
  if (hex.startsWith('2002')) return address.slice(2, 6) // 6to4 (RFC 3056): the router of a site
  if (hex.startsWith('20010000')) return address.slice(12).map((byte) => byte ^ 255) // Teredo (RFC 4380, 4)
  return undefined
}

/** Parses an address without its zone. One that embeds IPv4 becomes IPv4. Returns `undefined` if the text is not an address. */
export function parseAddress(text: string): Address | undefined {
  if (!text.includes(':')) return parseV4(text)
  const address = parseV6(text.replace(/%[\w.-]+$/, ''))
  const hex = address?.map((byte) => byte.toString(16).padStart(2, '0')).join('') ?? ''
  if (MAPPED.test(hex)) return address!.slice(12)
  const v4 = address && embedded(address, hex)
  return v4 ? Object.assign(v4, { outer: address }) : address
}

function parseV4(text: string): Address | undefined {
  const bits = readV4(text)
  return bits < 0 ? undefined : [bits >>> 24, (bits >>> 16) & 255, (bits >>> 8) & 255, bits & 255]
}

/** Four decimal numbers between two positions as 32 bits, or -1. Leading zeros are an error, because some parsers read them as octal. */
export function readV4(text: string, from = 0, end = text.length): number {
  let bits = 0
  let byte = -1
  let dots = 0
  for (let at = from; at < end; at += 1) {
    const digit = text.charCodeAt(at) - 48
    if (digit >= 0 && digit <= 9 && byte !== 0) {
      byte = byte < 0 ? digit : byte * 10 + digit
      if (byte > 255) return -1
    } else if (digit === -2 && byte >= 0 && dots < 3) {
      bits = bits * 256 + byte
      byte = -1
      dots += 1
    } else return -1
  }
  return dots === 3 && byte >= 0 ? bits * 256 + byte : -1
}

/** Parses eight groups, with `::` for one or more groups of zeros, and the last two perhaps as IPv4 (RFC 4291, 2.2). */
function parseV6(text: string): Address | undefined {
  const end = text.lastIndexOf(':') + 1
  const v4 = parseV4(text.slice(end))
  const [head, tail, ...more] = (v4 ? text.slice(0, end) + groupsOf(v4).join(':') : text)
    .split('::')
    .map((half) => (half ? half.split(':') : []))
  const zeros = 8 - head!.length - (tail?.length ?? 0)
  if (more.length > 0 || (tail ? zeros < 1 : zeros !== 0)) return undefined
  const groups = [...head!, ...Array<string>(zeros).fill('0'), ...(tail ?? [])]
  if (!groups.every((group) => /^[\da-f]{1,4}$/i.test(group))) return undefined
  return groups
    .map((group) => Number.parseInt(group, 16))
    .flatMap((pair) => [pair >> 8, pair & 255])
}

const groupsOf = (address: Address) =>
  address.flatMap((byte, index) =>
    index % 2 ? [] : ((byte << 8) | address[index + 1]!).toString(16),
  )

/** Writes an address as text, in the shortest form of IPv6 (RFC 5952), which is also that of URLs. */
export const formatAddress = (address: Address): string =>
  address.length === 4
    ? address.join('.')
    : new URL(`http://[${groupsOf(address).join(':')}]`).hostname.slice(1, -1)

/** The network of an address, with a prefix of `v4` or `v6` bits. The `/32` of a whole IPv4 address is left out. */
export function network(address: Address, v4: number, v6: number): string {
  const bits = address.length === 4 ? v4 : v6
  if (address.length === 4 && bits === 32) return formatAddress(address)
  return `${formatAddress(address.map((byte, index) => byte & mask(bits, index)))}/${bits}`
}

const mask = (bits: number, index: number) =>
  0xff & (0xff << (8 - Math.min(8, Math.max(0, bits - index * 8))))

type Range = [first: Address, last: Address]

/**
 * The range of an address or a CIDR network (RFC 4632; RFC 4291, 2.3). One of IPv4-mapped addresses is one of IPv4. Others that embed IPv4
 * stay IPv6, so that `64:ff9b::/96` is not all of IPv4. Returns `undefined` if the text is neither, or has host bits set.
 */
export function networkRange(text: string): Range | undefined {
  const [, address = '', length] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? []
  const parsed = address.includes('%') ? undefined : parseAddress(address)
  const first = parsed?.outer ?? parsed
  if (!first || length === undefined) return first && [first, first]
  const mapped = first.length === 4 && address.includes(':') ? 96 : 0
  const bits = Number(length) - mapped
  if (bits < 0 || bits > first.length * 8) return undefined
  if (first.some((byte, index) => byte & ~mask(bits, index))) return undefined
  return [first, first.map((byte, index) => byte | (0xff & ~mask(bits, index)))]
}

/** Compiles a list of networks into a test of whether an address is in one of them: a binary search. */
export function inNetworks(networks: string[]): (address: Address) => boolean {
  const ranges = mergedRanges(networks)
  const isIn = (address: Address) => {
    const before = lastFrom(ranges, address)
    return before !== undefined && compareAddresses(address, before[1]) <= 0
  }
  return (address) => isIn(address) || (address.outer !== undefined && isIn(address.outer))
}

function mergedRanges(networks: string[]): Range[] {
  const ranges = networks.map((text) => networkRange(text)!)
  const merged: Range[] = []
  for (const [first, last] of ranges.sort(([a], [b]) => compareAddresses(a, b))) {
    const before = merged.at(-1)
    if (!before || compareAddresses(before[1], first) < 0) merged.push([first, last])
    else if (compareAddresses(before[1], last) < 0) before[1] = last
  }
  return merged
}

/** Finds the last of the merged ranges that begins at or before an address. */
function lastFrom(ranges: Range[], address: Address): Range | undefined {
  let [low, high] = [0, ranges.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (compareAddresses(ranges[middle]![0], address) <= 0) low = middle + 1
    else high = middle
  }
  return ranges[low - 1]
}

/** Sorts IPv4 before IPv6, and each by value. */
function compareAddresses(a: Address, b: Address): number {
  if (a.length !== b.length) return a.length - b.length
  for (let index = 0; index < a.length; index += 1)
    if (a[index] !== b[index]) return a[index]! - b[index]!
  return 0
}
