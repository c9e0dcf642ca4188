/** The store on one Upstash database. Uses Upstash's client with our own transport (transport.ts gives the reasons). */
import { Redis, type Requester } from '@upstash/redis/fastly'
import { isRestUrl } from '../../base/bindings.ts'
import { asStoreError, StoreError } from '../../base/errors.ts'
import type { Observer } from '../../base/observer.ts'
import { LATE_MS, type Store, type StoreOptions, type StoreResult } from '../store.ts'
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
  /** Measures each HTTP request. Defaults to none. */
  observer?: Pick<Observer, 'begin'> | undefined
}

export interface UpstashStore extends Store {
  /**
   * Decides packs in one HTTP request, each in calls of the script of its own. Never rejects: each list gets its reply or its error, in
   * the order of the packs.
   */
  decidePacks(packs: Pack[], options?: StoreOptions): Promise<StoreResult[]>
}

/** The reply of the script to one call, or an error. reply.ts checks its form. */
type ScriptAnswer = string | StoreError

/** Creates a store on one Upstash database. With invalid options `decide` fails with `not-configured`. */
export function createUpstashStore({
  url,
  token,
  deadlineMs = 300,
  clock = 'store',
  namespace,
  onReload,
  observer,
}: UpstashOptions): UpstashStore {
  const database = isRestUrl(url) && token ? connect(url, token) : undefined
  let isLoaded = false // true once the database has run the script for this isolate

  /**
   * Runs packs in order, in one HTTP request. Never rejects: each list gets its reply or an error.
   * @param isResent true if the database has lost the script. The packs did not run then, so nothing is charged twice.
   */
  async function run(
    packs: Pack[],
    options: StoreOptions,
    deadline: AbortSignal,
    isResent = false,
  ): Promise<StoreResult[][]> {
    const now = options.now ?? (clock === 'edge' ? Date.now() : undefined)
    const calls: ScriptCall[] = []
    const invalid = packs.map((pack) => {
      try {
        calls.push(callOf(pack, now, namespace))
        return undefined
      } catch (error) {
        return asStoreError(error)
      }
    })
    const observed = database && calls.length > 0 ? observer?.begin(packs) : undefined
    if (observed) options.onCall?.(observed.call)
    let sent: ScriptAnswer[]
    try {
      if (!database) throw new StoreError('not-configured')
      // The first call carries the script, so that a cold start needs no second round trip.
      const isEval = isResent || !isLoaded
      const command = isEval ? 'eval' : 'evalsha'
      const text = isEval ? script : scriptSha
      if (calls.length === 1) sent = [await database.run(command, text, calls[0]!, deadline)]
      else if (calls.length === 0) sent = []
      else {
        const commands = calls.map(({ keys, args }, index) => [
          ...(index === 0 ? [command, text] : ['evalsha', scriptSha]),
          keys.length,
          ...keys,
          ...args,
        ])
        sent = (await database.sendEach(commands, deadline)).map(toText)
      }
    } catch (error) {
      const failure = toStoreError(error)
      sent = calls.map(() => failure)
    }
    const answers = invalid.map((error) => error ?? sent.shift()!)
    const replies = packs.map((pack, index) => repliesOf(pack, answers[index]!))
    observed?.end(replies, now !== undefined)
    isLoaded ||= replies.some(([reply]) => !(reply instanceof StoreError))
    const notRun = packs.filter((_, index) => isMissingScript(answers[index]!))
    // Other nodes of a cluster may lack it too. Each time at least one of them gets it.
    if (notRun.length === 0 || (isResent && notRun.length === packs.length)) return replies
    if (!isResent) onReload?.()
    const resent = await run(notRun, options, deadline, true)
    return replies.map((some, index) => (isMissingScript(answers[index]!) ? resent.shift()! : some))
  }

  /** All round trips of a call share one deadline. */
  const deadlineOf = (options: StoreOptions) =>
    AbortSignal.timeout(
      options.deadlineMs === undefined ? deadlineMs : options.deadlineMs + LATE_MS,
    )

  const store: UpstashStore = {
    async decide(requests, options = {}) {
      const packs = [{ lists: [requests], idempotency: options.idempotency }]
      const [reply] = (await run(packs, options, deadlineOf(options)))[0]!
      if (reply instanceof StoreError) throw reply
      return reply!
    },

    async decideEach(lists, options = {}) {
      return store.decidePacks([{ lists, idempotency: options.idempotency }], options)
    },

    async decidePacks(given, options = {}) {
      const deadline = deadlineOf(options)
      const packs = given.flatMap(({ lists, idempotency }) => pack(lists, idempotency))
      const replies = await run(packs, options, deadline)
      // One invalid list fails its whole pack before anything is charged. Send each list of such a pack by itself.
      const failed = packs.map(
        ({ lists }, index) => lists.length > 1 && hasChargedNothing(replies[index]![0]!),
      )
      const alone = packs.flatMap((pack, index) => (failed[index] ? unpack(pack) : []))
      const resent = alone.length > 0 ? (await run(alone, options, deadline)).flat() : []
      return replies.flatMap((some, index) =>
        failed[index] ? resent.splice(0, some.length) : some,
      )
    },
  }
  return store
}

const isMissingScript = (answer: ScriptAnswer) =>
  answer instanceof StoreError && answer.cause === 'NOSCRIPT'

/** True if the call was not made, or the script refused it before its first write: it reads all keys first. */
const hasChargedNothing = (reply: object) =>
  reply instanceof StoreError &&
  /^(WRONGTYPE$|ERR sluice: (call|request|idempotency: unexpected|key)\b)/.test(String(reply.cause))

/**
 * Reads the text of a key; null if the key does not exist. The deadline defaults to 5000 ms: do not make a client's request wait for it.
 * @throws {StoreError}
 */
export function createUpstashReader({
  url,
  token,
  deadlineMs = 5000,
  observer,
}: Pick<UpstashOptions, 'url' | 'token' | 'deadlineMs' | 'observer'>): (
  key: string,
) => Promise<string | null> {
  return async (key) => {
    if (!isRestUrl(url) || !token) throw new StoreError('not-configured')
    const observed = observer?.begin([])
    const sending = createTransport(url, token)([['GET', key]], AbortSignal.timeout(deadlineMs))
    const [answer] = await sending.catch((error) => {
      const failure = toStoreError(error)
      observed?.end([[failure]], false)
      throw failure
    })
    observed?.end([], false)
    if ('error' in answer!) throw new StoreError('redis-error')
    const { result } = answer!
    if (result !== null && typeof result !== 'string') throw new StoreError('bad-reply')
    return result
  }
}

/**
 * Upstash's client on another transport. The entry for Fastly has the same commands as the others and is the smallest: it reads no
 * environment and has no builders of schemas. Its own transport is replaced before it sends anything, so it gets neither URL nor token.
 */
class Client extends Redis {
  /** Otherwise the client would parse each text of a reply as JSON, and would throw and catch an error for each. */
  protected override opts = { automaticDeserialization: false }

  constructor(transport: Requester) {
    super({ url: 'http://unused', token: 'unused', backend: '', enableAutoPipelining: false })
    this.client = transport
  }
}

/** Upstash's client on our transport, and `sendEach` for several commands in one request. */
function connect(url: string, token: string) {
  const send = createTransport(url, token)
  let signal: AbortSignal | undefined
  const redis = new Client({
    request: <T>({ body }: { body?: unknown }) =>
      send([body], signal!).then(([answer]) => {
        if ('error' in answer!) return answer
        const text = toText(answer!)
        if (text instanceof StoreError) throw text
        return { result: text as T }
      }),
  })
  return {
    sendEach: send,
    run(command: 'eval' | 'evalsha', text: string, call: ScriptCall, deadline: AbortSignal) {
      signal = deadline // safe for concurrent calls: the client calls `request` synchronously
      return redis[command]<string[], string>(text, call.keys, call.args)
    },
  }
}

/** Checks that the reply begins with the time. */
function toText(answer: Answer): ScriptAnswer {
  if ('error' in answer) return refusal(answer.error)
  const { result } = answer
  return typeof result === 'string' && /^\d/.test(result) ? result : new StoreError('bad-reply')
}
