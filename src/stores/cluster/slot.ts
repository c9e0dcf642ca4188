const utf8 = new TextEncoder()

/** The number of hash slots of a Redis Cluster. */
const SLOTS = 16_384

/**
 * The hash slot of all keys of a subject in a Redis Cluster: CRC-16/XMODEM of their hash tag. The tag is the text between the first `{` of
 * a key and the next `}`. Source: Redis Cluster specification, "Hash tags".
 */
export const slotOf = (subject: string): number => crc16(utf8.encode(tagOf(subject))) % SLOTS

/** The hash tag of all keys of a subject: `{subject}` ends at the first `}`. */
export const tagOf = (subject: string): string => subject.split('}', 1)[0]!

export function crc16(bytes: Uint8Array): number {
  let crc = 0
  for (const byte of bytes) {
    let x = (crc >> 8) ^ byte
    x ^= x >> 4
    crc = ((crc << 8) ^ (x << 12) ^ (x << 5) ^ x) & 0xffff
  }
  return crc
}
