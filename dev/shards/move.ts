/** Moves the keys of clients between shards. docs/explanation/moving-shards.md describes the steps. */
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type Layouts,
  leaves,
  moveKey,
  nameOf,
  placesOf,
  receiptOf,
  subjectOf,
} from '../../src/shards/move/places.ts'
import {
  arrive,
  type Departed,
  depart,
  departures,
  settle,
} from '../../src/shards/move/transfer.ts'
import {
  command,
  contentsOf,
  type ShardDatabase,
  scan,
  sendAll,
  TIMEOUT_MS,
  timeLimit,
} from './database.ts'
import { withLock } from './lock.ts'
import { statusOf } from './status.ts'

/** A move, and where its databases are. */
export interface MovePlan extends Layouts {
  namespace?: string | undefined
  /** The databases of both layouts. */
  databases: ShardDatabase[]
}

export interface MoveSettings extends MovePlan {
  /** Keys per second. Defaults to no limit. */
  rate?: number | undefined
  /** Deletes records at new shards that would win over arriving values. Defaults to false: an error. */
  overwrite?: boolean | undefined
  onProgress?: (progress: MoveProgress) => void
}

export interface MoveProgress {
  /** Keys of the old shards that were read. */
  read: number
  /** Keys of the old shards. */
  total: number
  moved: number
}

export interface MoveResult {
  moved: number
  /** Keys that appeared at old shards after the beginning: an isolate of the old deployment wrote them. */
  strays: number
}

const RECEIPT_MS = 60_000
/** The life of a key that a tool has not deleted because it has ended, ms. */
const LATE_MS = 60_000
/** The first pass moves every key that was there at the beginning. Further passes settle what requests have moved meanwhile. */
const MAX_PASSES = 20

/**
 * Moves all keys whose place changes. It may be repeated after any failure.
 * @throws Error if a database fails, or if a new shard holds records that would win
 */
export async function moveShards(settings: MoveSettings): Promise<MoveResult> {
  await begin(settings)
  const result = { moved: 0, strays: 0 }
  for (let pass = 1; pass <= MAX_PASSES; pass++) {
    const { moved, strays } = await runPass(settings, result.moved, pass)
    await checkBegun(settings)
    result.moved += moved
    result.strays += strays
    if (moved === 0) return result
  }
  throw new Error(
    `Keys keep appearing at ${settings.from.join(', ')}: a Worker without "moveFrom" still writes to them. Deploy the configuration with "moveFrom", and run the command again.`,
  )
}

/** Writes the name of the move to each old shard. From then on, requests move their keys, too. */
async function begin(settings: MoveSettings) {
  const { from, namespace, databases } = settings
  const olds = oldsOf(settings)
  const [key, name] = [moveKey(namespace), nameOf(settings)]
  const first = olds.find((one) => one.name === [...from].sort()[0])!
  await withLock(first, namespace, async (renew) => {
    await checkDistinct(databases, `${key}:probe`)
    const begun = await Promise.all(olds.map((old) => command(old, 'GET', key)))
    for (const [n, other] of begun.entries()) {
      if (other !== null && other !== name) await checkEnded(olds[n]!, String(other), namespace)
    }
    if (!begun.includes(name)) await prepare(settings, renew)
    for (const old of olds) await command(old, 'SET', key, name)
  })
}

const oldsOf = ({ from, databases }: MovePlan) =>
  from.map((name) => databases.find((one) => one.name === name)!)

/** Throws if two names are one database. Their URLs may differ. */
async function checkDistinct(databases: ShardDatabase[], key: string) {
  try {
    for (const one of databases) await command(one, 'SET', key, one.name, 'PX', LATE_MS)
    for (const one of databases) {
      const name = await command(one, 'GET', key)
      if (name !== one.name) {
        throw new Error(`${one.name} and ${name} are one database. Give each shard its own.`)
      }
    }
  } finally {
    for (const one of databases) await command(one, 'DEL', key)
  }
}

/** Throws if another move has left keys at an old shard: the Worker would no longer find their values. */
async function checkEnded(old: ShardDatabase, move: string, namespace: string | undefined) {
  const [from, to] = move.split('>').map((names) => names.split(','))
  const { left } = await statusOf(old, { from: from!, to: to!, namespace })
  if (left > 0) {
    throw new Error(
      `The move ${move} has begun at ${old.name} and has not ended: ${left} keys are left. End it first, with its two lists in the configuration.`,
    )
  }
}

/** Throws if an old shard no longer has the name of the move: isolates that start would decide there again. */
async function checkBegun(settings: MovePlan) {
  const name = nameOf(settings)
  for (const old of oldsOf(settings)) {
    if ((await command(old, 'GET', moveKey(settings.namespace))) === name) continue
    throw new Error(
      `${old.name} has lost the name of the move, and perhaps other keys. Run the command again.`,
    )
  }
}

/** Removes what earlier moves have left at the new places. Records there would win over the values that arrive. */
async function prepare(
  { from, to, namespace, databases, overwrite }: MoveSettings,
  renew: () => Promise<void>,
) {
  const placeOf = placesOf({ from, to })
  for (const database of databases.filter(({ name }) => to.includes(name))) {
    const { name } = database
    let records = 0
    for await (const keys of scan(database, namespace)) {
      const foreign = keys.filter((key) => {
        const places = placeOf(subjectOf(key))
        return places.to === name && places.from !== name
      })
      const contents = await contentsOf(database, foreign)
      const isOld = (key: string, n: number) => contents[n] === 'settled' || key.endsWith(':moved')
      const isRecord = (key: string, n: number) =>
        (contents[n] === 'live' || contents[n] === 'departed') && !isOld(key, n)
      records += foreign.filter(isRecord).length
      await renew()
      const removed = foreign.filter((key, n) => isOld(key, n) || (overwrite && isRecord(key, n)))
      if (removed.length > 0) await command(database, 'DEL', ...removed)
    }
    if (records > 0 && !overwrite) {
      throw new Error(
        `${name} holds ${records} keys of clients that the old layout keeps elsewhere. Is the new layout in use already? If they are left from an earlier attempt: --overwrite deletes them.`,
      )
    }
  }
}

/** Moves the keys of each old shard once. */
async function runPass(settings: MoveSettings, movedBefore: number, pass: number) {
  const { from, to, namespace, databases, rate, onProgress } = settings
  const named = new Map(databases.map((database) => [database.name, database]))
  const placeOf = placesOf({ from, to })
  const olds = oldsOf(settings)
  const sizes = await Promise.all(olds.map((database) => command(database, 'DBSIZE')))
  const total = sizes.reduce<number>((sum, size) => sum + Number(size), 0)
  const startedAt = performance.now()
  let [read, tried, moved, strays] = [0, 0, 0, 0]
  for (const database of olds) {
    const [seconds] = (await command(database, 'TIME')) as [string]
    for await (const keys of scan(database, namespace)) {
      const moving = keys.filter(
        (key) => !key.endsWith(':moved') && leaves(database.name, placeOf(subjectOf(key))),
      )
      for (const some of departures(moving)) {
        const departed = await moveKeys(
          settings,
          database,
          some,
          (key) => named.get(placeOf(subjectOf(key)).to)!,
        )
        moved += departed.length
        // After the first pass, a key that was not marked yet is new.
        if (pass > 1) strays += departed.filter((one) => markedAt(one) >= +seconds * 1000).length
        tried += some.length
        const waitMs = rate ? (tried / rate) * 1000 - (performance.now() - startedAt) : 0
        if (waitMs > 0) await sleep(waitMs)
      }
      read += keys.length
      onProgress?.({ read: Math.min(read, total), total, moved: movedBefore + moved })
    }
  }
  return { moved, strays }
}

const markedAt = ({ mark }: Departed) => Number(mark.split(';')[1])

/** Moves some keys of one old shard. Returns those that had a value there. */
async function moveKeys(
  { from, to, namespace }: MoveSettings,
  old: ShardDatabase,
  keys: string[],
  newPlaceOf: (key: string) => ShardDatabase,
): Promise<Departed[]> {
  const begun: [string, string] = [moveKey(namespace), nameOf({ from, to })]
  const startedAt = Date.now()
  const departed = await named(old, depart(old.send, begun, keys, timeLimit()))
  // The values may be old if this computer has slept. Another tool may have moved them, so that the receipts have expired.
  if (Date.now() - startedAt > TIMEOUT_MS) throw new Error(`${old.name}: the reply came too late.`)
  const places = new Map<ShardDatabase, Departed[]>()
  for (const one of departed) {
    const place = newPlaceOf(one.key)
    places.set(place, [...(places.get(place) ?? []), one])
  }
  for (const [place, some] of places) await named(place, arrive(place.send, some, timeLimit()))
  if (departed.length > 0) await named(old, settle(old.send, departed, timeLimit()))
  // No request can still have the value after this time.
  for (const [place, some] of places) {
    await sendAll(
      place,
      some.map(({ key }) => ['PEXPIRE', receiptOf(key), RECEIPT_MS]),
    )
  }
  return departed
}

const named = <Result>({ name }: ShardDatabase, step: Promise<Result>) =>
  step.catch((error: Error) => {
    throw new Error(`${name}: ${error.message}`)
  })

/** The number of keys that would move, by old and new place. Writes nothing. */
export async function planMove({ from, to, namespace, databases }: MovePlan) {
  const placeOf = placesOf({ from, to })
  const counts = new Map<string, number>()
  for (const database of databases.filter(({ name }) => from.includes(name))) {
    for await (const keys of scan(database, namespace)) {
      const moving = keys.filter((key) => leaves(database.name, placeOf(subjectOf(key))))
      const contents = await contentsOf(database, moving)
      moving.forEach((key, n) => {
        if (key.endsWith(':moved') || (contents[n] !== 'live' && contents[n] !== 'departed')) return
        const path = `${database.name} > ${placeOf(subjectOf(key)).to}`
        counts.set(path, (counts.get(path) ?? 0) + 1)
      })
    }
  }
  return counts
}

/**
 * Removes the marks and the names of a move, after the old layout has left the configuration.
 * @throws Error if some keys are left to move
 */
export async function finishMove(plan: MovePlan): Promise<number> {
  const { from, namespace, databases } = plan
  const left = [...(await planMove(plan)).values()].reduce((sum, count) => sum + count, 0)
  if (left > 0) throw new Error(`${left} keys are left to move. Finish the move first.`)
  let removed = 0
  for (const database of databases.filter(({ name }) => from.includes(name))) {
    for await (const keys of scan(database, namespace)) {
      const contents = await contentsOf(database, keys)
      const marks = keys.filter((_, n) => contents[n] === 'settled')
      if (marks.length > 0) removed += Number(await command(database, 'DEL', ...marks))
    }
    await command(database, 'DEL', moveKey(namespace))
  }
  return removed
}
