import ipaddr from 'ipaddr.js'

/** The bytes of an address: 4 for IPv4, 16 for IPv6. */
export type Address = readonly number[]

/** Parses an address; an IPv4-mapped one (RFC 4291, 2.5.5.2) becomes IPv4. Returns `undefined` if the text is not an address. */
export function parseAddress(text: string): Address | undefined {
  try {
    return ipaddr.process(text).toByteArray()
  } catch {
    return undefined
  }
}

export const formatAddress = (address: Address): string =>
  ipaddr.fromByteArray([...address]).toString()

/**
 * The network of an address, with a prefix of `v4` bits for IPv4 and `v6` bits for IPv6. The `/32` of a whole IPv4 address is left
 * out.
 */
export function network(address: Address, v4: number, v6: number): string {
  const bits = address.length === 4 ? v4 : v6
  const first = formatAddress(address.map((byte, index) => byte & mask(bits, index)))
  return address.length === 4 && bits === 32 ? first : `${first}/${bits}`
}

/** The netmask of byte `index` for a prefix of `bits`. */
const mask = (bits: number, index: number) =>
  0xff & (0xff << (8 - Math.min(8, Math.max(0, bits - index * 8))))

/** The first and the last address of a network. */
type Range = [first: Address, last: Address]

/** The range of an address or a CIDR network (RFC 4632; RFC 4291, 2.3). Returns `undefined` if the text is neither, or has host bits set. */
export function networkRange(text: string): Range | undefined {
  const [, address = '', length] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? []
  // The library parses "10" as 0.0.0.10 and "010.0.0.1" as 8.0.0.1. In a list these are mistakes.
  const isUsual = address.includes(':') || ipaddr.IPv4.isValidFourPartDecimal(address)
  const first = isUsual && !address.includes('%') ? parseAddress(address) : undefined
  if (!first || length === undefined) return first && [first, first]
  const mapped = first.length === 4 && address.includes(':') ? 96 : 0
  const bits = Number(length) - mapped
  if (bits < 0 || bits > first.length * 8) return undefined
  if (first.some((byte, index) => byte & ~mask(bits, index))) return undefined
  return [first, first.map((byte, index) => byte | (0xff & ~mask(bits, index)))]
}

/** Compiles a list of networks into a test of whether an address is in one of them. The test is a binary search. */
export function inNetworks(networks: string[]): (address: Address) => boolean {
  const ranges = mergedRanges(networks)
  return (address) => {
    const before = lastFrom(ranges, address)
    return before !== undefined && compareAddresses(address, before[1]) <= 0
  }
}

/** The ranges of networks in order, with overlapping ranges merged. */
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
  for (let index = 0; index < a.length; index += 1) {
    if (a[index] !== b[index]) return a[index]! - b[index]!
  }
  return 0
}
