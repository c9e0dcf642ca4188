/** The store of turns of one limiter: Redis or Durable Objects, with a deadline and a breaker, and the isolate itself if it does not answer. */
import type { OwnStore } from '../../core/base/commands.ts'
import { asStoreError, StoreError } from '../../core/base/errors.ts'
import { createBreaker } from '../../core/connection/breaker.ts'
import type { Limit, Store, StoreReply, StoreRequest } from '../../core/connection/store.ts'
import { senderOf } from '../../core/connection/upstash/upstash.ts'
import type { Limiter } from '../../core/create.ts'
import { databaseFrom } from '../../core/decide/database.ts'
import type { PolicyLimit } from '../../core/decide/limit.ts'
import { REFUND_MS } from '../../core/decide/settle.ts'
import { shareOf } from '../../core/fallback/share.ts'
import { decideList } from '../../stores/durable-objects/decide.ts'
import { memoryParts } from '../../stores/durable-objects/memory-parts.ts'
import { saying } from '../../stores/durable-objects/objects.ts'
import type { Parts } from '../../stores/durable-objects/record.ts'
import {
  redisTurns,
  type Turn,
  type TurnAsk,
  type TurnReport,
  type TurnStore,
} from './turn-store.ts'
import { turnOf } from './turns.ts'

/** A request of `TurnSubject`: a list with one request that has a turn to give. */
export interface TurnRequest {
  mode: 'take' | 'peek'
  limits: Limit[]
  turn: Omit<TurnAsk | TurnReport, 'limits'> & { line: string }
}

/** Gives turns by the object of a subject. */
const objectTurns =
  (objects: Store, line: string): TurnStore['turn'] =>
  async ({ limits, ...turn }) => {
    const mode = turn.do === 'take' ? 'take' : 'peek'
    const request: TurnRequest = { mode, limits, turn: { ...turn, line } }
    const reply = (await objects.decide([request])) as StoreReply & { turn?: Turn }
    if (reply.turn) return reply.turn
    throw saying('not-configured', 'export TurnSubject of sluice/outbound as SluiceSubject')
  }

export interface TurnStores {
  /** Gives a turn. @throws {StoreError} */
  store: TurnStore
  /** Counts in this isolate. */
  local: TurnStore
}

export function turnStores(
  limiter: Limiter,
  env: Record<string, unknown>,
  line: string,
): TurnStores {
  const { config, log } = limiter
  const { store } = limiter.partsOf(env)
  const own = config.store?.own as OwnStore<Store> | undefined
  const { deadlineMs } = config
  const breaker = createBreaker({
    onOpen: (code) =>
      log('breaker-opened', code, 'circuit open: turns are given without the store'),
    onClose: (ms) => log('breaker-closed', '', `circuit closed: it was open for ${ms} ms`),
  })

  function unbounded(): TurnStore['turn'] {
    if (own) return objectTurns(own.create(env, config), line)
    const database = databaseFrom(config, env, undefined)
    const send = senderOf(database)
    if (!send) {
      const error = new StoreError('not-configured', database.problem)
      return () => Promise.reject(error)
    }
    const now = () => (config.clock === 'edge' ? Date.now() : undefined)
    return redisTurns({ send, now, namespace: config.namespace, line })
  }
  const give = unbounded()
  const decide: Store['decide'] = (requests, options) => store.decide(requests, options)

  async function turn(ask: TurnAsk | TurnReport): Promise<Turn> {
    const list: StoreRequest[] = [{ mode: 'peek', limits: ask.limits }]
    const call = breaker.begin([list], { deadlineMs }, Date.now())
    if (!call) throw new StoreError('circuit-open')
    let isLate = false
    const answer = give(ask).then(
      (turn) => {
        call.end(turn)
        // Nobody waits for this turn any more.
        if (isLate && ask.do === 'take')
          void giveUp({ decide }, ask.limits, turn, ask.waitMs).catch(() => {})
        return turn
      },
      (thrown) => {
        const error = asStoreError(thrown)
        call.end(error)
        throw error
      },
    )
    let timer: ReturnType<typeof setTimeout> | undefined
    const deadline = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        isLate = true
        reject(new StoreError('timeout'))
      }, deadlineMs)
    })
    try {
      return await Promise.race([answer, deadline])
    } finally {
      clearTimeout(timer)
      answer.catch(() => {})
    }
  }
  return { store: { turn, decide }, local: localTurns(line) }
}

/** True if a request has no place within its wait: then nothing is charged, and it is in no line. */
export const isRefused = ({ place, now }: Pick<Turn, 'place' | 'now'>, waitMs: number): boolean =>
  place === null || place > now + waitMs

/**
 * Refunds the units of a turn that is given up, and releases its slots or its place in the line for them. A sliding log keeps the units:
 * it would take back its newest ones, which may be those of a later turn that is sent.
 */
export async function giveUp(
  { decide }: Pick<TurnStore, 'decide'>,
  limits: Limit[],
  turn: Turn,
  waitMs: number,
): Promise<void> {
  if (isRefused(turn, waitMs)) return
  const requests: StoreRequest[] = []
  for (const limit of limits) {
    const { algorithm } = limit.terms
    if (algorithm === 'concurrency') requests.push({ mode: 'refund', limits: [limit] })
    else if (turn.ahead === 0 && algorithm !== 'sliding-log')
      requests.push({ mode: 'refund', limits: [limit], decidedAt: turn.place! })
  }
  if (requests.length > 0) await decide(requests, { deadlineMs: REFUND_MS })
}

/** The most subjects that an isolate counts by itself. */
const MAX_SUBJECTS = 1_000

/** Turns that one isolate gives by itself, up to `localShare` of each limit. */
function localTurns(line: string): TurnStore {
  const subjects = new Map<string, Parts>()
  function partsOf([limit]: readonly Limit[]): Parts {
    const { subject } = limit!
    const parts = subjects.get(subject) ?? memoryParts()
    if (subjects.size >= MAX_SUBJECTS) subjects.delete(subjects.keys().next().value!)
    subjects.set(subject, parts)
    return parts
  }
  return {
    turn: async (ask) =>
      turnOf(
        partsOf(ask.limits),
        { ...ask, limits: ask.limits.map(sharedLimit) },
        line,
        Date.now(),
      ),
    async decide(requests) {
      const now = Date.now()
      const states = requests.map(
        (request) =>
          decideList(
            partsOf(request.limits),
            [{ ...request, limits: request.limits.map(sharedLimit) }],
            now,
          )[0]!,
      )
      return { decidedAt: now, states }
    },
  }
}

function sharedLimit(limit: Limit): Limit {
  const { share, cost, floor } = shareOf(limit.terms, limit.cost, limit.floor)
  return { ...limit, terms: { ...limit.terms, ...share }, cost, floor }
}

/** The limits that count in time, which a turn is charged to. */
export const ratesOf = (limits: PolicyLimit[]): PolicyLimit[] =>
  limits.filter(({ terms }) => terms.algorithm !== 'concurrency')
