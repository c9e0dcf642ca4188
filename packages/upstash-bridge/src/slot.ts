/** Number of hash slots of a Redis Cluster. */
export const SLOTS = 16_384

/** CRC-16/XMODEM of each byte. */
const TABLE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1
  return crc
})

/**
 * The hash slot of a key in a Redis Cluster: that of its hash tag, the text between the first `{` and the next `}`, or
 * that of the whole key. Source: Redis Cluster specification, "Hash tags".
 */
export function slotOf(key: string | Buffer): number {
  // latin1 maps each byte to one character. Redis receives a string in UTF-8, which is the same for ASCII.
  const bytes = isAscii(key) ? key : toBuffer(key).toString('latin1')
  const open = bytes.indexOf('{')
  const close = open < 0 ? -1 : bytes.indexOf('}', open + 1)
  const [start, end] = close > open + 1 ? [open + 1, close] : [0, bytes.length]
  let crc = 0
  for (let index = start; index < end; index++) {
    crc = ((crc << 8) & 0xffff) ^ TABLE[(crc >> 8) ^ bytes.charCodeAt(index)]!
  }
  return crc % SLOTS
}

function toBuffer(key: string | Buffer): Buffer {
  return typeof key === 'string' ? Buffer.from(key) : key
}

function isAscii(key: string | Buffer): key is string {
  if (typeof key !== 'string') return false
  for (let index = 0; index < key.length; index++) if (key.charCodeAt(index) > 127) return false
  return true
}
