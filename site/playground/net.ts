/** Replaces `node:net` in the browser. */
import { parseAddress } from '../../src/core/base/ip.ts'

export const isIP = (text: string): number =>
  parseAddress(text) ? (text.includes(':') ? 6 : 4) : 0
