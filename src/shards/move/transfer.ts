/** The steps that move keys from an old shard to a new one. docs/explanation/moving-shards.md describes them. Each is idempotent. */
import { StoreError } from '../../base/errors.ts'
import { type Answer, refusal, toStoreError } from '../../store/upstash/transport.ts'
import { receiptOf } from './places.ts'
import {
  arrive as arriveScript,
  depart as departScript,
  settle as settleScript,
} from './script-text.ts'

/** The maximum of the values of one call, in characters. Upstash refuses requests above 1 MB in its smallest plan. */
const MAX_LENGTH = 400_000

/** Sends commands in one HTTP request. */
export type SendCommands = (commands: unknown[], signal: AbortSignal) => Promise<Answer[]>

/** A key that is marked as moved, with its value. */
export interface Departed {
  key: string
  /** The TTL of the value, ms. */
  lifeMs: number
  /** `moved;<time>;<value>` */
  mark: string
}

/**
 * Marks keys at their old place as moved. Returns those with a value that has to arrive at the new place.
 * @param begun the key of the move and its name; the step fails if the move has not begun
 * @throws {StoreError}
 */
export async function depart(
  send: SendCommands,
  [moveKey, name]: [moveKey: string, name: string],
  keys: string[],
  signal: AbortSignal,
): Promise<Departed[]> {
  const reply = await run(send, departScript, [moveKey, ...keys], [name], signal)
  if (!Array.isArray(reply) || reply.length !== 2 * keys.length) throw new StoreError('bad-reply')
  return keys
    .map((key, index) => ({ key, lifeMs: reply[2 * index], mark: reply[2 * index + 1] }))
    .filter(({ mark }) => mark !== '')
}

/**
 * Stores values at their new place.
 * @throws {StoreError}
 */
export async function arrive(
  send: SendCommands,
  departed: Departed[],
  signal: AbortSignal,
): Promise<void> {
  for (const some of chunksOf(departed, ({ mark }) => mark.length, MAX_LENGTH)) {
    const keys = some.flatMap(({ key }) => [key, receiptOf(key)])
    const args = some.flatMap(({ lifeMs, mark }) => [lifeMs, mark])
    await run(send, arriveScript, keys, args, signal)
  }
}

/**
 * Removes values that have arrived from their old place. The marks remain.
 * @throws {StoreError}
 */
export const settle = (
  send: SendCommands,
  departed: Departed[],
  signal: AbortSignal,
): Promise<unknown> =>
  run(
    send,
    settleScript,
    departed.map(({ key }) => key),
    departed.map(({ mark }) => /^moved;\d+;/.exec(mark)![0]),
    signal,
  )

/** Divides keys into lists for one call each. A log or the slots of a limit may be large. */
export const departures = (keys: string[]): string[][] =>
  chunksOf(keys, (key) => (key.endsWith('}') ? 1 : 25), 100)

/** Divides a list into parts whose sizes add up to at most `max`, if single items are not larger. */
function chunksOf<T>(list: T[], sizeOf: (item: T) => number, max: number): T[][] {
  const chunks: T[][] = []
  let size = max
  for (const item of list) {
    size += sizeOf(item)
    if (size > max) {
      chunks.push([])
      size = sizeOf(item)
    }
    chunks.at(-1)!.push(item)
  }
  return chunks
}

/** Runs a script. It is sent with each call, because it is short and runs once for a key. */
async function run(
  send: SendCommands,
  script: string,
  keys: string[],
  args: unknown[],
  signal: AbortSignal,
): Promise<unknown> {
  const command = ['EVAL', script, keys.length, ...keys, ...args]
  const [answer] = await send([command], signal).catch((error) => {
    throw toStoreError(error)
  })
  if ('error' in answer!) throw refusal(answer.error)
  return answer!.result
}
