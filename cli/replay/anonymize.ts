import { createHmac, randomBytes } from 'node:crypto'
import { type Address, formatAddress, parseAddress } from '../../src/core/base/ip.ts'
import { cached } from './cache.ts'
import type { LogLine } from './line.ts'

/**
 * Creates a function that makes a line anonymous: it replaces the address by a keyed permutation, and removes the query, user agent,
 * referrer and other headers. Different addresses stay different. Addresses of one /24 (IPv4), or of one /48 or /64 (IPv6), have a
 * common one afterwards. The time, method, path, host, status, country, network number and data center stay.
 * @param key must be secret; random by default
 */
export function createAnonymizer(key: Uint8Array = randomBytes(32)): (line: LogLine) => LogLine {
  const replace = createPermutation(key)
  const replaced = cached((ip) => {
    const address = parseAddress(ip)
    return address && formatAddress(replace(address))
  })
  return ({ time, ip, method, target, host, status, country, asn, colo }) => ({
    time,
    ip: ip === undefined ? undefined : replaced(ip),
    method,
    target: target.split('?', 1)[0]!,
    host,
    status,
    userAgent: undefined,
    referer: undefined,
    country,
    asn,
    colo,
    headers: undefined,
  })
}

/** Writes a line as JSON that `openLog` reads without a mapping. Ends with a line feed. */
export function writeLine(line: LogLine): string {
  const {
    time,
    ip,
    method,
    target,
    host,
    status,
    userAgent,
    referer,
    country,
    asn,
    colo,
    headers,
  } = line
  return `${JSON.stringify({
    time: new Date(time).toISOString(),
    client_ip: ip,
    method,
    path: target,
    host,
    status,
    user_agent: userAgent,
    referer,
    country,
    asn,
    colo,
    headers,
  })}\n`
}

/** Permutes addresses. The parts of an address are permuted one after the other, each depending on the parts before it. */
function createPermutation(key: Uint8Array): (address: Address) => Address {
  const permute = createFeistel(key)
  return (address) => {
    const ends = address.length === 4 ? V4_PARTS : V6_PARTS
    if (address.length === 16 && isZero(address, V6_PARTS[0])) return address
    const result: number[] = []
    for (const [index, end] of ends.entries()) {
      const before = address.slice(0, result.length)
      let part = address.slice(result.length, end)
      // The prefix of zeros is for special addresses, such as IPv4 in IPv6. Walking along the cycle avoids it.
      do part = permute(part, before)
      while (index === 0 && address.length === 16 && isZero(part, part.length))
      result.push(...part)
    }
    return result
  }
}

/** The bytes at which the parts of an address end. */
const V4_PARTS = [3, 4]
const V6_PARTS = [6, 8, 16] as const
const isZero = (bytes: readonly number[], end: number) =>
  bytes.slice(0, end).every((byte) => byte === 0)

const ROUNDS = 10

/** A balanced Feistel network over the half bytes of a part. The round function is HMAC-SHA-256. */
function createFeistel(key: Uint8Array) {
  return (part: readonly number[], tweak: readonly number[]): number[] => {
    const digits = part.flatMap((byte) => [byte >> 4, byte & 15])
    let [left, right] = [digits.slice(0, part.length), digits.slice(part.length)]
    for (let round = 0; round < ROUNDS; round += 1) {
      const mask = createHmac('sha256', key)
        .update(Uint8Array.of(round, part.length, ...tweak, ...right))
        .digest()
      const mixed = left.map((digit, index) => digit ^ (mask[index]! & 15))
      left = right
      right = mixed
    }
    const mixed = [...left, ...right]
    return part.map((_, index) => (mixed[index * 2]! << 4) | mixed[index * 2 + 1]!)
  }
}
