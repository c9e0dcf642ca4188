import { newClient } from '../src/client.ts'
import { type RunningCluster, startCluster } from '../src/index.ts'
import { SLOTS, slotOf } from '../src/slot.ts'

/** A cluster of three masters (0 to 2) and their replicas (3 to 5), and commands to its nodes. */
export async function startAdmin(nodeTimeout: number) {
  const cluster = await startCluster({ nodeTimeout })
  const clients = await Promise.all(
    cluster.urls.map((url) =>
      newClient({ url })
        .on('error', () => {})
        .connect(),
    ),
  )
  const ask = (node: number, ...command: string[]) => clients[node]!.sendCommand(command)
  return {
    ...cluster,
    ask,
    /** Keys in slots that a master owned at the start. */
    keysOf: (master: number, count = 1) => keysOf(master, count),
    info: async (node: number, section: string) => String(await ask(node, 'INFO', section)),
    /** The index of the node that owns a slot, according to `node`. */
    async ownerOf(slot: number, node: number) {
      const ranges = (await ask(node, 'CLUSTER', 'SLOTS')) as unknown as [
        number,
        number,
        [string, number],
      ][]
      const range = ranges.find(([first, last]) => first <= slot && slot <= last)
      return cluster.urls.findIndex((url) => new URL(url).port === String(range?.[2][1]))
    },
    /** Begins to move a slot: from now on its source answers ASK for keys that it lacks. */
    async beginMove(slot: number, from: number, to: number) {
      const [fromId, toId] = [await ask(from, 'CLUSTER', 'MYID'), await ask(to, 'CLUSTER', 'MYID')]
      await ask(to, 'CLUSTER', 'SETSLOT', `${slot}`, 'IMPORTING', String(fromId))
      await ask(from, 'CLUSTER', 'SETSLOT', `${slot}`, 'MIGRATING', String(toId))
    },
    /** Moves some keys of a slot. @returns false if none are left */
    async moveKeys(slot: number, from: number, to: number, count: number) {
      const keys = await ask(from, 'CLUSTER', 'GETKEYSINSLOT', `${slot}`, `${count}`)
      const names = keys as unknown as string[]
      if (names.length === 0) return false
      const { hostname, port } = new URL(cluster.urls[to]!)
      await ask(from, 'MIGRATE', hostname, port, '', '0', '5000', 'KEYS', ...names)
      return true
    },
    async endMove(slot: number, to: number) {
      const id = String(await ask(to, 'CLUSTER', 'MYID'))
      for (const node of [to, ...[0, 1, 2].filter((other) => other !== to)]) {
        await ask(node, 'CLUSTER', 'SETSLOT', `${slot}`, 'NODE', id)
      }
    },
    async stop() {
      for (const client of clients) client.destroy()
      await cluster.stop()
    },
  } satisfies RunningCluster & Record<string, unknown>
}

export type Admin = Awaited<ReturnType<typeof startAdmin>>

function keysOf(master: number, count: number): string[] {
  const keys: string[] = []
  for (let n = 0; keys.length < count; n++) {
    if (Math.floor((slotOf(`key:${n}`) * 3) / SLOTS) === master) keys.push(`key:${n}`)
  }
  return keys
}
