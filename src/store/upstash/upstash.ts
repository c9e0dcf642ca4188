/** The store on one Upstash database. Uses Upstash's client with our own transport (transport.ts gives the reasons). */
import { Redis } from '@upstash/redis'
import { isRestUrl } from '../../base/bindings.ts'
import { StoreError } from '../../base/errors.ts'
import type { Store, StoreOptions } from '../store.ts'
import { callOf, type Pack, pack, repliesOf, unpack } from './pack.ts'
import type { ScriptCall } from './script.ts'
import { script, scriptSha } from './script-text.ts'
import { type Answer, createTransport, refusal, toStoreError } from './transport.ts'

export interface UpstashOptions {
  /** `UPSTASH_REDIS_REST_URL` */
  url: string | undefined
  /** `UPSTASH_REDIS_REST_TOKEN` */
  token: string | undefined
  /** When a call without its own deadline is aborted, ms. The aborted call may still have been charged. Defaults to 300. */
  deadlineMs?: number
  /** The clock for calls without a time. `edge` is the clock of the isolate and saves one command. Defaults to `store`. */
  clock?: 'store' | 'edge'
  /** A part of every key that separates applications on one database. Defaults to none. */
  namespace?: string | undefined
  /** Called when the database has lost the script and gets it again. */
  onReload?: () => void
}

/** The numbers that the script replies to one call, or an error. */
type ScriptAnswer = number[] | StoreError

/** Creates a store on one Upstash database. With invalid options `decide` fails with `not-configured`. */
export function createUpstashStore({
  url,
  token,
  deadlineMs = 300,
  clock = 'store',
  namespace,
  onReload,
}: UpstashOptions): Store {
  const database = isRestUrl(url) && token ? connect(url, token) : undefined
  let sha: string | undefined
  let isLoaded = false // true once the database has run the script for this isolate

  /** Runs calls in order, in one HTTP request. Never rejects: each call gets its answer or an error. */
  async function send(
    calls: ScriptCall[],
    withScript: boolean,
    deadline: AbortSignal,
  ): Promise<ScriptAnswer[]> {
    try {
      if (!database) throw new StoreError('not-configured')
      sha ??= await scriptSha()
      const [first, ...others] = calls
      const command = withScript ? 'eval' : 'evalsha'
      const text = withScript ? script : sha
      if (others.length === 0) {
        const { keys, args } = first!
        return [await database.run(command, text, keys, args, deadline)]
      }
      const commands = calls.map(({ keys, args }, index) => [
        ...(index === 0 ? [command, text] : ['evalsha', sha]),
        keys.length,
        ...keys,
        ...args,
      ])
      return (await database.sendEach(commands, deadline)).map(toNumbers)
    } catch (error) {
      const failure = toStoreError(error)
      return calls.map(() => failure)
    }
  }

  async function run(calls: ScriptCall[], deadline: AbortSignal): Promise<ScriptAnswer[]> {
    // The first call carries the script, so that a cold start needs no second round trip.
    const answers = await send(calls, !isLoaded, deadline)
    const notRun = calls.filter((_, index) => isMissingScript(answers[index]!))
    if (notRun.length === 0) return answers
    onReload?.()
    const resent = await send(notRun, true, deadline) // these calls did not run, so nothing is charged twice
    return answers.map((answer) => (isMissingScript(answer) ? resent.shift()! : answer))
  }

  async function decide(packs: Pack[], time: number | undefined, deadline: AbortSignal) {
    const now = time ?? (clock === 'edge' ? Date.now() : undefined)
    const calls = packs.map((pack) => callOf(pack, now, namespace))
    const answers = await run(calls, deadline)
    const replies = packs.map((pack, index) => repliesOf(pack, answers[index]!))
    isLoaded ||= replies.some(([reply]) => !(reply instanceof StoreError))
    return replies
  }

  // All round trips of a call share one deadline.
  const deadlineOf = (options: StoreOptions) =>
    AbortSignal.timeout(options.deadlineMs ?? deadlineMs)

  return {
    async decide(requests, options = {}) {
      const { now, idempotency } = options
      const [replies] = await decide([{ lists: [requests], idempotency }], now, deadlineOf(options))
      const [reply] = replies!
      if (reply instanceof StoreError) throw reply
      return reply!
    },

    async decideEach(lists, options = {}) {
      if (lists.length === 0) return []
      const deadline = deadlineOf(options)
      const packs = pack(lists, options.idempotency)
      const replies = await decide(packs, options.now, deadline)
      // One invalid list fails its whole pack before anything is charged. Send each list of such a pack by itself.
      const failed = packs.map(
        ({ lists }, index) => lists.length > 1 && hasChargedNothing(replies[index]![0]!),
      )
      const alone = packs.flatMap((pack, index) => (failed[index] ? unpack(pack) : []))
      const resent = alone.length > 0 ? (await decide(alone, options.now, deadline)).flat() : []
      return replies.flatMap((some, index) =>
        failed[index] ? resent.splice(0, some.length) : some,
      )
    },
  }
}

const isMissingScript = (answer: ScriptAnswer) =>
  answer instanceof StoreError && answer.cause === 'NOSCRIPT'

/** True if the script refused the call before its first write: it checks all arguments and keys first. */
const hasChargedNothing = (reply: object) =>
  reply instanceof StoreError &&
  /^(WRONGTYPE$|ERR sluice: (KEYS|ARGV|row|key)\b)/.test(String(reply.cause))

/**
 * Reads the text of a key; null if the key does not exist. The deadline defaults to 5000 ms: do not make a client's request wait for it.
 * @throws {StoreError}
 */
export function createUpstashReader({
  url,
  token,
  deadlineMs = 5000,
}: Pick<UpstashOptions, 'url' | 'token' | 'deadlineMs'>): (key: string) => Promise<string | null> {
  return async (key) => {
    if (!isRestUrl(url) || !token) throw new StoreError('not-configured')
    let answer: Answer
    try {
      answer = await createTransport(url, token).send(['GET', key], AbortSignal.timeout(deadlineMs))
    } catch (error) {
      throw toStoreError(error)
    }
    if ('error' in answer) throw new StoreError('redis-error')
    const { result } = answer
    if (result !== null && typeof result !== 'string') throw new StoreError('bad-reply')
    return result
  }
}

/** Upstash's client on our transport, and `sendEach` for several commands in one request. */
function connect(url: string, token: string) {
  const { send, sendEach } = createTransport(url, token)
  let signal: AbortSignal | undefined
  const redis = new Redis({
    async request<T>({ body }: { body?: unknown }) {
      const answer = await send(body, signal!)
      if ('error' in answer) return answer
      const numbers = toNumbers(answer)
      if (numbers instanceof StoreError) throw numbers
      return { result: numbers as T }
    },
  })
  return {
    sendEach,
    run(
      command: 'eval' | 'evalsha',
      text: string,
      keys: string[],
      args: string[],
      deadline: AbortSignal,
    ): Promise<number[]> {
      signal = deadline // safe for concurrent calls: the client calls `request` synchronously
      return redis[command](text, keys, args)
    },
  }
}

/** Checks that the reply is an array of integers. The client would also convert text that looks like a number. */
function toNumbers(answer: Answer): ScriptAnswer {
  if ('error' in answer) return refusal(answer.error)
  const { result } = answer
  return Array.isArray(result) && result.every(Number.isSafeInteger)
    ? result
    : new StoreError('bad-reply')
}
