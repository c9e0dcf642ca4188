/** The only file that talks to Redis: Upstash's client, over a transport that avoids that client's own. */
import { Redis } from '@upstash/redis'
import { isRestUrl } from '../../base/bindings.ts'
import { StoreError } from '../../base/errors.ts'
import type { Store, StoreOptions } from '../store.ts'
import { callOf, type Pack, pack, repliesOf, unpack } from './pack.ts'
import { type ScriptCall, script, scriptSha } from './script.ts'
import { type Answer, createTransport, refusal, toStoreError } from './transport.ts'

export interface UpstashOptions {
  /** `UPSTASH_REDIS_REST_URL` */
  url: string | undefined
  /** `UPSTASH_REDIS_REST_TOKEN` */
  token: string | undefined
  /** When a call is aborted, in ms, unless the call sets a deadline. It may have counted all the same. Defaults to 300. */
  deadlineMs?: number
  /** The clock that decides if the call sets no time. `edge` is the isolate's, and saves a command. Defaults to `store`. */
  clock?: 'store' | 'edge'
  /** Separates the keys from those of other applications on the database. Defaults to none. */
  namespace?: string | undefined
  /** Called when the database had lost the script and received it again. */
  onReload?: () => void
}

/** The answer of the script to one call. */
type ScriptAnswer = number[] | StoreError

/** A store on one Upstash database. Invalid options are an error of `decide`. */
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
  let loaded = false // whether this isolate has seen the database run the script

  /** Runs calls in one HTTP request, in order. Never rejects: each has its answer. */
  async function send(
    calls: ScriptCall[],
    brings: boolean,
    deadline: AbortSignal,
  ): Promise<ScriptAnswer[]> {
    try {
      if (!database) throw new StoreError('not-configured')
      sha ??= await scriptSha()
      const [first, ...others] = calls
      const command = brings ? 'eval' : 'evalsha'
      const text = brings ? script : sha
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
    // The first call brings the script, so that a cold start costs no second round trip.
    const answers = await send(calls, !loaded, deadline)
    const lost = calls.filter((_, index) => hasLost(answers[index]!))
    if (lost.length === 0) return answers
    onReload?.()
    const again = await send(lost, true, deadline) // NOSCRIPT: nothing ran, so nothing counts twice
    return answers.map((answer) => (hasLost(answer) ? again.shift()! : answer))
  }

  async function decide(packs: Pack[], said: number | undefined, deadline: AbortSignal) {
    const now = said ?? (clock === 'edge' ? Date.now() : undefined)
    const calls = packs.map((pack) => callOf(pack, now, namespace))
    const answers = await run(calls, deadline)
    const replies = packs.map((pack, index) => repliesOf(pack, answers[index]!))
    loaded ||= replies.some(([reply]) => !(reply instanceof StoreError))
    return replies
  }

  // One deadline for all round trips.
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
      // An invalid list fails all of its pack before anything is charged, so each list is asked again by itself.
      const failed = packs.map(
        ({ lists }, index) => lists.length > 1 && hasChargedNothing(replies[index]![0]!),
      )
      const alone = packs.flatMap((pack, index) => (failed[index] ? unpack(pack) : []))
      const again = alone.length > 0 ? (await decide(alone, options.now, deadline)).flat() : []
      return replies.flatMap((some, index) => (failed[index] ? again.splice(0, some.length) : some))
    },
  }
}

const hasLost = (answer: ScriptAnswer) =>
  answer instanceof StoreError && answer.cause === 'NOSCRIPT'

/** The script checks all arguments and keys before the first write. */
const hasChargedNothing = (reply: object) =>
  reply instanceof StoreError &&
  /^(WRONGTYPE$|ERR sluice: (KEYS|ARGV|row|key)\b)/.test(String(reply.cause))

/** Reads a text from a database; null if there is none. Not for the path of a request. */
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

/** The client on our transport, and that transport for several commands at once. */
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
      signal = deadline // the client calls `request` synchronously
      return redis[command](text, keys, args)
    },
  }
}

/** The script replies with integers. The client would also convert text that looks like a number. */
function toNumbers(answer: Answer): ScriptAnswer {
  if ('error' in answer) return refusal(answer.error)
  const { result } = answer
  return Array.isArray(result) && result.every(Number.isSafeInteger)
    ? result
    : new StoreError('bad-reply')
}
