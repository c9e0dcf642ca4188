/** The store on one Upstash database. */
import { isRestUrl } from '../../base/bindings.ts'
import type { Command, CommandAnswer, SendCommands } from '../../base/commands.ts'
import { sha1 } from '../../base/digest.ts'
import { asStoreError, StoreError } from '../../base/errors.ts'
import { isCloudflare } from '../../base/runtime.ts'
import { inTime, withTimeout } from '../../base/sleep.ts'
import type { CallObserver, ScriptAnswer } from '../observed-call.ts'
import {
  type Idempotency,
  LATE_MS,
  type Store,
  type StoreOptions,
  type StoreRequest,
  type StoreResult,
  storeBy,
} from '../store.ts'
import { divided, type Pack, pack, unpack } from './pack.ts'
import type { Codec, ScriptPart } from './part.ts'
import { decode } from './reply.ts'
import { encode, type ScriptCall } from './script.ts'
import { generalScript } from './script-text.ts'
import { type CompiledCall, compiledCalls, newScript, type Script } from './sets.ts'
import { refusal, restSender, toStoreError } from './transport.ts'

export interface UpstashDatabase {
  url?: string | undefined
  token?: string | undefined
  /** Sends the commands. Defaults to HTTP requests to `url` with `token`. */
  send?: SendCommands | undefined
  /** Why there is no client, as a text that is safe to log. */
  problem?: string
}

export interface UpstashOptions extends UpstashDatabase {
  /** When a call without its own deadline is aborted, ms. The aborted call may still have been charged. Defaults to 300. */
  deadlineMs?: number
  /** The clock for calls without a time. `edge` is the clock of the isolate and saves one command. Defaults to `store`. */
  clock?: 'store' | 'edge'
  namespace?: string | undefined
  lua?: readonly ScriptPart[] | undefined
  /** Called when the database has lost a script and gets it again. */
  onReload?: () => void
  observer?: CallObserver | undefined
}

export interface UpstashStore extends Store {
  /**
   * Decides groups of lists in one HTTP request, each in calls of the script of its own. Never rejects: each list gets its reply or its
   * error, in the order of the groups.
   */
  decideGroups(groups: Group[], options?: StoreOptions): Promise<StoreResult[]>
}

/** Lists that may share calls of the script. */
interface Group {
  lists: StoreRequest[][]
  idempotency?: Idempotency | undefined
}

/** One command of an HTTP request: a call of the general script, or of a compiled one. */
interface StoreCommand extends ScriptCall {
  script: Script
  set?: CompiledCall['set']
}

/** Creates a store on one Upstash database. With invalid options `decide` fails with `not-configured`. */
export function createUpstashStore({
  deadlineMs = 300,
  clock = 'store',
  namespace,
  lua = [],
  onReload,
  observer,
  ...database
}: UpstashOptions): UpstashStore {
  let general: Script | undefined
  const codec: Codec = Object.assign({}, ...lua)
  const send = senderOf(database)
  const compiledCall = compiledCalls()
  function callFor({ requests, idempotency }: Pack, now: number | undefined, isDeclined: boolean) {
    try {
      const isGeneral = isDeclined || idempotency
      const compiled = isGeneral ? undefined : compiledCall(requests, now, namespace)
      if (compiled) return compiled
      general ??= newScript(generalScript(lua))
      return { script: general, ...encode(requests, now, idempotency, namespace, codec) }
    } catch (error) {
      return asStoreError(error)
    }
  }

  /**
   * Runs packs in order, in one HTTP request. Never rejects: each one gets its reply or an error.
   * @param isResent true if the database has lost a script, or a compiled one has declined. Neither has charged anything
   * @param declined the packs that a compiled script has declined
   */
  async function run(
    packs: Pack[],
    options: StoreOptions,
    deadline: AbortSignal | undefined,
    isResent = false,
    declined: ReadonlySet<Pack> = NONE,
  ): Promise<StoreResult[]> {
    const now = options.now ?? (clock === 'edge' ? Date.now() : undefined)
    const calls: (StoreCommand | StoreError)[] = []
    for (const pack of packs) calls.push(callFor(pack, now, declined.has(pack)))
    const commands: Command[] = []
    const carried: Script[] = []
    for (const call of calls) {
      if (call instanceof StoreError) continue
      const { script, keys, args } = call
      // The first call carries the script, so that a cold start needs no second round trip.
      const isKnown = (script.isLoaded && !isResent) || carried.includes(script)
      carried.push(script)
      if (isKnown) script.sha ??= await sha1(script.text)
      const head = isKnown ? ['evalsha', script.sha!] : ['eval', script.text]
      commands.push([...head, keys.length, ...keys, ...args])
    }
    const observed = send && commands.length > 0 ? observer?.begin(packs) : undefined
    if (observed) options.onCall?.(observed.call)
    let sent: (CommandAnswer | StoreError)[]
    try {
      if (!send) throw new StoreError('not-configured', database.problem)
      const { deadlineMs: ms = deadlineMs } = options
      sent = commands.length > 0 ? await send(commands, deadline, ms) : []
    } catch (error) {
      const failure = toStoreError(error)
      sent = commands.map(() => failure)
    }
    let next = 0
    let hasFailed = false
    const answers: ScriptAnswer[] = []
    const replies: StoreResult[] = []
    for (let index = 0; index < calls.length; index += 1) {
      const call = calls[index]!
      const answer = call instanceof StoreError ? call : answerTo(call, sent[next++]!)
      hasFailed ||= answer instanceof StoreError
      answers.push(answer)
      const { requests, idempotency } = packs[index]!
      const reply =
        answer instanceof StoreError ? answer : decode(answer, requests, idempotency, codec)
      replies.push(reply ?? new StoreError('bad-reply'))
    }
    observed?.end(replies, { answers, sendsTime: now !== undefined })
    if (!hasFailed) return replies

    const missing = packs.filter((_, index) => hasCause(answers[index]!, 'NOSCRIPT'))
    const refused = packs.filter((_, index) => hasCause(answers[index]!, DECLINED))
    // Other nodes of a cluster may lack a script too. Each time at least one of them gets it.
    const isStuck = isResent && missing.length === packs.length
    if (isStuck || missing.length + refused.length === 0) return replies
    if (!isResent && missing.length > 0) onReload?.()
    const again = packs.filter((pack) => missing.includes(pack) || refused.includes(pack))
    const resent = await run(again, options, deadline, true, new Set([...declined, ...refused]))
    return packs.map((pack, index) => resent[again.indexOf(pack)] ?? replies[index]!)
  }

  /** All round trips of a call share one deadline. A client of the app ends its calls itself. In a Worker a signal makes a call dearer by a tenth, and the runtime replaces it. */
  const within = <T>(
    { deadlineMs: ms }: StoreOptions,
    call: (deadline?: AbortSignal) => Promise<T>,
  ) =>
    inWorkers || database.send
      ? call()
      : withTimeout(ms === undefined ? deadlineMs : ms + LATE_MS, call)

  const decideGroups: UpstashStore['decideGroups'] = (groups, options = {}) =>
    within(options, (deadline) => {
      const packs: Pack[] = []
      for (const { lists, idempotency } of groups) packs.push(...pack(lists, idempotency))
      const running = run(packs, options, deadline)
      if (!packs.some(({ lengths }) => lengths)) return running
      // One invalid list fails its whole pack before anything is charged. Send each list of such a pack by itself.
      return running.then(async (replies) => {
        const failed = packs.map(
          ({ lengths }, index) => lengths && hasChargedNothing(replies[index]!),
        )
        const alone = packs.flatMap((pack, index) => (failed[index] ? unpack(pack) : []))
        const resent = alone.length > 0 ? await run(alone, options, deadline) : []
        return packs.flatMap((pack, index) =>
          failed[index] ? resent.splice(0, pack.lengths!.length) : divided(pack, replies[index]!),
        )
      })
    })
  const both = storeBy((lists, options) =>
    decideGroups([{ lists, idempotency: options.idempotency }], options),
  )
  return { ...both, decideGroups }
}

const NONE: ReadonlySet<Pack> = new Set()

/** The reply of a compiled script that has declined. A reply of null may be that of a call that has counted. */
const DECLINED = 'declined'

const hasCause = (answer: ScriptAnswer, cause: string) =>
  answer instanceof StoreError && answer.cause === cause

/** True if the call was not made, or the script refused it before its first write: it reads all keys first. */
const hasChargedNothing = (reply: object) =>
  reply instanceof StoreError &&
  /^(WRONGTYPE$|ERR sluice: (call|request|idempotency: unexpected|key)\b)/.test(String(reply.cause))

/**
 * Makes a function that sends one command. The deadline defaults to 5000 ms: do not make a client's request wait for it. The function throws
 * a `StoreError`. Its parameter `billed` is the number of commands that Upstash bills.
 */
export function createCommander({
  deadlineMs = 5000,
  observer,
  ...database
}: UpstashDatabase & Pick<UpstashOptions, 'deadlineMs' | 'observer'>) {
  const send = senderOf(database)
  return async (command: Command, billed: number, isOperators = false): Promise<unknown> => {
    if (!send) throw new StoreError('not-configured', database.problem)
    const observed = observer?.begin([], isOperators)
    try {
      const sending = send([command], AbortSignal.timeout(deadlineMs), deadlineMs)
      const [answer] = await inTime(sending, deadlineMs, () => new StoreError('timeout'))
      if (answer instanceof StoreError) throw answer
      if ('error' in answer!) throw refusal(answer.error)
      observed?.end([], billed)
      return answer!.result
    } catch (error) {
      const failure = toStoreError(error)
      observed?.end([failure], 0)
      throw failure
    }
  }
}

/** Reads the text of a key; null if the key does not exist. */
export function createUpstashReader(options: Parameters<typeof createCommander>[0]) {
  const run = createCommander(options)
  return async (key: string): Promise<string | null> => {
    const result = await run(['get', key], 1)
    if (result !== null && typeof result !== 'string') throw new StoreError('bad-reply')
    return result
  }
}

const inWorkers = isCloudflare()

export const senderOf = ({ url, token, send }: UpstashDatabase): SendCommands | undefined =>
  send ?? (isRestUrl(url) && token ? restSender(url, token) : undefined)

/** The reply of a script. Checks that it begins with the time. */
function answerTo({ script, set }: StoreCommand, answer: CommandAnswer | StoreError): ScriptAnswer {
  if (answer instanceof StoreError) return answer
  if ('error' in answer) return refusal(answer.error)
  const { result } = answer
  if (result === DECLINED && set) {
    set.declines += 1
    return new StoreError('redis-error', DECLINED)
  }
  if (typeof result !== 'string' || !/^\d/.test(result)) return new StoreError('bad-reply')
  script.isLoaded = true
  return result
}
