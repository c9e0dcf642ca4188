/** The state of each shard, and what is left to move. */
import { leaves, moveKey, nameOf, placesOf, subjectOf } from '../../src/shards/move/places.ts'
import { command, contentsOf, type ShardDatabase, scan } from './database.ts'

export interface ShardStatus {
  name: string
  /** All keys of the database. */
  keys: number
  /** Bytes; undefined if the database does not report it. */
  memory: number | undefined
  /** Commands per second; undefined if the database does not report it. */
  load: number | undefined
  /** True if the move has begun at this database. Undefined if it is not an old shard. */
  hasBegun?: boolean
  /** Keys of the namespace that have not arrived at their new place. */
  left: number
  /** Marks of keys that have moved. */
  marks: number
  /** Stored replies of idempotent calls. They do not move. */
  replies: number
}

/** A database that did not answer. */
export interface UnreachableShard {
  name: string
  error: Error
}

/** Reads the states of databases, as far as they answer. */
export const statusesOf = (
  databases: ShardDatabase[],
  layouts: Parameters<typeof statusOf>[1],
): Promise<(ShardStatus | UnreachableShard)[]> =>
  Promise.all(
    databases.map((database) =>
      statusOf(database, layouts).catch((error) => ({ name: database.name, error })),
    ),
  )

/** Reads the state of a database. @param from the old layout of a move, if there is one */
export async function statusOf(
  database: ShardDatabase,
  {
    from,
    to,
    namespace,
  }: {
    from?: readonly string[] | undefined
    to: readonly string[]
    namespace?: string | undefined
  },
): Promise<ShardStatus> {
  const { name } = database
  const keys = Number(await command(database, 'DBSIZE'))
  // Upstash does not document INFO.
  const info = String(await command(database, 'INFO').catch(() => ''))
  const figure = (field: string) => {
    const text = new RegExp(`^${field}:(\\d+)`, 'm').exec(info)?.[1]
    return text === undefined ? undefined : Number(text)
  }
  const status: ShardStatus = {
    ...{ name, keys, memory: figure('used_memory'), load: figure('instantaneous_ops_per_sec') },
    ...{ left: 0, marks: 0, replies: 0 },
  }
  if (!from?.includes(name)) return status
  status.hasBegun = (await command(database, 'GET', moveKey(namespace))) === nameOf({ from, to })
  const placeOf = placesOf({ from, to })
  for await (const all of scan(database, namespace)) {
    const own = all.filter((key) => !key.endsWith(':moved'))
    const contents = await contentsOf(database, own)
    own.forEach((key, n) => {
      if (contents[n] === 'reply') status.replies += 1
      else if (contents[n] === 'settled') status.marks += 1
      else if (contents[n] !== 'none' && leaves(name, placeOf(subjectOf(key)))) status.left += 1
    })
  }
  return status
}
