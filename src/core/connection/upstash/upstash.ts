/** The store on one Upstash database. */
import { isRestUrl } from '../../base/bindings.ts'
import type { Command, CommandAnswer, SendCommands } from '../../base/commands.ts'
import { asStoreError, StoreError } from '../../base/errors.ts'
import { isCloudflare } from '../../base/runtime.ts'
import type { CallObserver } from '../observed-call.ts'
import { LATE_MS, type Store, type StoreOptions, type StoreResult } from '../store.ts'
import { callOf, type Pack, pack, repliesOf, unpack } from './pack.ts'
import { script, scriptSha } from './script-text.ts'
import { refusal, restSender, toStoreError } from './transport.ts'

/** One database. */
export interface UpstashDatabase {
  /** `UPSTASH_REDIS_REST_URL` */
  url?: string | undefined
  /** `UPSTASH_REDIS_REST_TOKEN` */
  token?: string | undefined
  /** Sends the commands. Defaults to HTTP requests to `url` with `token`. */
  send?: SendCommands | undefined
}

export interface UpstashOptions extends UpstashDatabase {
  /** When a call without its own deadline is aborted, ms. The aborted call may still have been charged. Defaults to 300. */
  deadlineMs?: number
  /** The clock for calls without a time. `edge` is the clock of the isolate and saves one command. Defaults to `store`. */
  clock?: 'store' | 'edge'
  /** A part of every key that separates applications on one database. Defaults to none. */
  namespace?: string | undefined
  /** Called when the database has lost the script and gets it again. */
  onReload?: () => void
  /** Measures each HTTP request. Defaults to none. */
  observer?: CallObserver | undefined
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
  deadlineMs = 300,
  clock = 'store',
  namespace,
  onReload,
  observer,
  ...database
}: UpstashOptions): UpstashStore {
  const send = senderOf(database)
  let isLoaded = false // true once the database has run the script for this isolate

  /**
   * Runs packs in order, in one HTTP request. Never rejects: each list gets its reply or an error.
   * @param isResent true if the database has lost the script. The packs did not run then, so nothing is charged twice.
   */
  async function run(
    packs: Pack[],
    options: StoreOptions,
    deadline: AbortSignal | undefined,
    isResent = false,
  ): Promise<StoreResult[][]> {
    const now = options.now ?? (clock === 'edge' ? Date.now() : undefined)
    // The first call carries the script, so that a cold start needs no second round trip.
    const isEval = isResent || !isLoaded
    const answers: (ScriptAnswer | undefined)[] = []
    const commands: Command[] = []
    for (const pack of packs) {
      try {
        const { keys, args } = callOf(pack, now, namespace)
        const head = isEval && commands.length === 0 ? ['eval', script] : ['evalsha', scriptSha]
        commands.push([...head, keys.length, ...keys, ...args])
        answers.push(undefined)
      } catch (error) {
        answers.push(asStoreError(error))
      }
    }
    const observed = send && commands.length > 0 ? observer?.begin(packs) : undefined
    if (observed) options.onCall?.(observed.call)
    let sent: (CommandAnswer | StoreError)[]
    try {
      if (!send) throw new StoreError('not-configured')
      sent = commands.length > 0 ? await send(commands, deadline) : []
    } catch (error) {
      const failure = toStoreError(error)
      sent = commands.map(() => failure)
    }
    const replies: StoreResult[][] = []
    const notRun: Pack[] = []
    let next = 0
    for (let index = 0; index < packs.length; index += 1) {
      const pack = packs[index]!
      const answer = answers[index] ?? toText(sent[next++]!)
      answers[index] = answer
      const some = repliesOf(pack, answer)
      replies.push(some)
      if (isMissingScript(answer)) notRun.push(pack)
      else if (!(some[0] instanceof StoreError)) isLoaded = true
    }
    observed?.end(replies, now !== undefined)
    // Other nodes of a cluster may lack it too. Each time at least one of them gets it.
    if (notRun.length === 0 || (isResent && notRun.length === packs.length)) return replies
    if (!isResent) onReload?.()
    const resent = await run(notRun, options, deadline, true)
    return replies.map((some, index) => (isMissingScript(answers[index]!) ? resent.shift()! : some))
  }

  /** All round trips of a call share one deadline. In a Worker a signal makes a call dearer by a tenth, and the runtime replaces it. */
  const deadlineOf = (options: StoreOptions) =>
    inWorkers
      ? undefined
      : AbortSignal.timeout(
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
  deadlineMs = 5000,
  observer,
  ...database
}: UpstashDatabase & Pick<UpstashOptions, 'deadlineMs' | 'observer'>): (
  key: string,
) => Promise<string | null> {
  const send = senderOf(database)
  return async (key) => {
    if (!send) throw new StoreError('not-configured')
    const observed = observer?.begin([])
    const deadline = AbortSignal.timeout(deadlineMs)
    const sending = Promise.race([send([['get', key]], deadline), abortOf(deadline)])
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

/** Rejects when a signal aborts: a client of the app does not take it. */
const abortOf = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(new StoreError('timeout')))
  })

const inWorkers = isCloudflare()

/** `undefined` without a valid URL and a token. */
const senderOf = ({ url, token, send }: UpstashDatabase): SendCommands | undefined =>
  send ?? (isRestUrl(url) && token ? restSender(url, token) : undefined)

/** Checks that the reply begins with the time. */
function toText(answer: CommandAnswer | StoreError): ScriptAnswer {
  if (answer instanceof StoreError) return answer
  if ('error' in answer) return refusal(answer.error)
  const { result } = answer
  return typeof result === 'string' && /^\d/.test(result) ? result : new StoreError('bad-reply')
}
