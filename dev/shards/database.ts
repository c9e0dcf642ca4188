/** The databases of shards, over Upstash's REST API. */
import { setTimeout as sleep } from 'node:timers/promises'
import { credentialsOf, isRestUrl, variablesOf } from '../../src/base/bindings.ts'
import { subjectOf } from '../../src/shards/move/places.ts'
import type { SendCommands } from '../../src/shards/move/transfer.ts'
import { recordOf } from '../../src/store/upstash/script.ts'
import { createTransport, toStoreError } from '../../src/store/upstash/transport.ts'

/** A database, by the name of its shard. */
export interface ShardDatabase {
  name: string
  send: SendCommands
}

/** The longest time of one HTTP request. */
export const TIMEOUT_MS = 30_000

/** A limit on the time of one HTTP request. */
export const timeLimit = () => AbortSignal.timeout(TIMEOUT_MS)

/**
 * Reads the credentials of shards from variables.
 * @throws Error that names the missing variables, or two shards with one database
 */
export function openDatabases(names: readonly string[], env: object): ShardDatabase[] {
  const missing: string[] = []
  const urls = new Map<string, string>()
  const databases = names.map((name) => {
    const { url, token } = credentialsOf(env, name)
    const variables = variablesOf(name)
    if (!isRestUrl(url)) missing.push(variables.url)
    if (!token) missing.push(variables.token)
    const database = `${url} ${token}`
    const other = url && token ? urls.get(database) : undefined
    if (other) throw new Error(`${other} and ${name} are one database. Give each shard its own.`)
    urls.set(database, name)
    return { name, send: createTransport(url ?? '', token ?? '') }
  })
  if (missing.length > 0) {
    throw new Error(
      `Set ${missing.join(', ')} to the REST URL and the REST token of a database of Upstash or a bridge.`,
    )
  }
  return databases
}

/** Sends one command. @throws Error with the name of the shard */
export async function command(
  { name, send }: ShardDatabase,
  ...words: unknown[]
): Promise<unknown> {
  const [answer] = await sendAll({ name, send }, [words])
  if ('error' in answer!) throw new Error(`${name}: Redis refuses ${words[0]}: ${answer.error}`)
  return answer!.result
}

/** Sends commands in one request. @throws Error with the name of the shard if there is no answer */
export const sendAll = ({ name, send }: ShardDatabase, commands: unknown[][]) =>
  commands.length === 0
    ? Promise.resolve([])
    : send(commands, timeLimit()).catch((error) => {
        throw new Error(`${name}: ${toStoreError(error).message}`)
      })

/** Yields the keys of a namespace with those of receipts, in parts. A key may come twice. */
export async function* scan(
  database: ShardDatabase,
  namespace: string | undefined,
): AsyncGenerator<string[]> {
  const start = recordOf('', namespace).slice(0, -1)
  let cursor = '0'
  do {
    const reply = await command(database, 'SCAN', cursor, 'MATCH', `${start}*`, 'COUNT', 500)
    const [next, keys] = reply as [string | number, string[]]
    cursor = String(next)
    yield keys.filter((key) => subjectOf(key) !== 'move')
  } while (cursor !== '0')
}

/**
 * The content of a key: a record, a log or slots (`live`), a mark with its value (`departed`) or without it (`settled`), or the stored
 * reply of an idempotent call.
 */
export type Content = 'live' | 'departed' | 'settled' | 'reply' | 'none'

/** Keys per second. Upstash runs 10,000 commands a second, and the Worker needs some of them. */
const READ_RATE = 5_000

/** The contents of keys, from the beginnings of their values. */
export async function contentsOf(database: ShardDatabase, keys: string[]): Promise<Content[]> {
  const commands = keys.map((key) => ['GETRANGE', key, 0, 40])
  const pause = sleep((keys.length / READ_RATE) * 1000)
  const [answers] = await Promise.all([sendAll(database, commands), pause])
  return answers.map((answer) => {
    if ('error' in answer) return 'live' // a log or slots
    const text = String(answer.result)
    if (text === '') return 'none'
    if (text.startsWith('idem2;')) return 'reply'
    const [mark] = /^moved;\d+;/.exec(text) ?? []
    if (mark === undefined) return 'live'
    return text === mark ? 'settled' : 'departed'
  })
}
