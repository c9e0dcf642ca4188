import { ErrorReply } from 'redis'
import type { Command, Format, Reply } from './connection.ts'
import { SLOTS } from './slot.ts'
import type { Topology } from './topology.ts'

/**
 * SCAN over all masters of a cluster, one after another. The cursor of the client is the cursor of the node times the
 * number of slots, plus the first slot of the node.
 */
export async function scanAll(
  topology: Topology,
  command: Command,
  format: Format,
): Promise<Reply> {
  const [name = '', cursor = '', ...options] = command
  if (!/^\d{1,40}$/.test(String(cursor))) return new ErrorReply('ERR invalid cursor')
  const position = BigInt(String(cursor))
  const slot = Number(position % BigInt(SLOTS))
  const firstSlots = topology.firstSlots
  // The node that has started at this slot, or the next one if the slots have moved.
  const index = Math.max(
    0,
    firstSlots.findLastIndex((first) => first <= slot),
  )
  const node = topology.masters[index]!
  const reply = await node.send([name, `${position / BigInt(SLOTS)}`, ...options], format)
  if (!Array.isArray(reply)) return reply
  const inside = BigInt(String(reply[0]))
  const next = inside > 0n ? (firstSlots[index] ?? 0) : (firstSlots[index + 1] ?? 0)
  return [Buffer.from(`${inside * BigInt(SLOTS) + BigInt(next)}`), ...reply.slice(1)]
}
