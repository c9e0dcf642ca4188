import type { Reply } from './connection.ts'

/** Positions of keys: `first`, `first + step`, … `last`. A negative `last` counts from the end. */
type Range = { first: number; last: number; step: number }

/** The key positions of each command: `none`, a range, or `ask` if only Redis can find them (such as XREAD). */
export type CommandTable = Map<string, 'none' | 'ask' | Range>

/** Commands on a whole database. Under the flag Upstash refuses them (guard/common.lua). */
const WIDE = ['flushall', 'flushdb', 'swapdb']

/** Reads the reply to `COMMAND` of Redis 7.0 and later. */
export function readTable(reply: Reply): CommandTable {
  const table: CommandTable = new Map()
  for (const entry of Array.isArray(reply) ? reply : []) {
    if (!Array.isArray(entry)) continue
    const name = String(entry[0]).toLowerCase()
    const flags = Array.isArray(entry[2]) ? entry[2].map(String) : []
    const [first = 0, last = 0, step = 0] = entry.slice(3, 6).map(Number)
    const isContainer = Array.isArray(entry[9]) && entry[9].length > 0
    if (flags.includes('movablekeys') || isContainer || WIDE.includes(name)) table.set(name, 'ask')
    else if (first === 0 || flags.includes('pubsub')) table.set(name, 'none')
    else table.set(name, { first, last, step })
  }
  return table
}
