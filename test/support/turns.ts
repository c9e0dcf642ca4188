import fc from 'fast-check'
import type { Limit, StoreRequest, Terms } from '../../src/core/connection/store.ts'
import { turnsScript } from '../../src/features/outbound/script-text.ts'
import {
  decodeTurn,
  lineTag,
  type Turn,
  type TurnAsk,
  type TurnReport,
  turnCall,
} from '../../src/features/outbound/turn-store.ts'
import type { TurnLimit } from '../model/turns.ts'
import type { Counting } from './schedules.ts'
import type { Server } from './server.ts'

/** A schedule of requests that take turns. */
export interface TurnSchedule {
  policies: Omit<Terms, 'localShare'>[]
  steps: TurnStep[]
}

export interface TurnStep {
  /** ms since the step before. */
  wait: number
  /** The cost for each policy. */
  costs: number[]
  /** The longest time to the place, ms. */
  longest: number
  /** Gives the place of this many steps ago up, before this step. 0 gives none up. */
  abandoned: number
}

export const turnStart = 1_789_000_000_000

const policyOf = (algorithm: Counting, index: number) =>
  fc.record({
    tag: fc.constant(`t${index}`),
    algorithm: fc.constant(algorithm),
    limit: fc.integer({ min: 1, max: 6 }),
    windowMs: fc.integer({ min: 1, max: 40 }),
    burst: fc.integer({ min: 1, max: 6 }),
    align: fc.constantFrom('first-request' as const, 'clock' as const),
  })

/** @param back the longest step back of the clock, ms */
export const turnSchedule = (algorithms: Counting[], back = 0): fc.Arbitrary<TurnSchedule> =>
  fc.tuple(...algorithms.map(policyOf)).chain((policies) =>
    fc.record({
      policies: fc.constant(policies),
      steps: fc.array(
        fc.record({
          wait: fc.oneof(
            { weight: 6, arbitrary: fc.integer({ min: 0, max: 4 }) },
            { weight: 2, arbitrary: fc.integer({ min: -back, max: 60 }) },
          ),
          costs: fc.tuple(
            ...policies.map(() =>
              fc.oneof(
                { weight: 4, arbitrary: fc.constant(1) },
                { weight: 1, arbitrary: fc.integer({ min: 0, max: 7 }) },
              ),
            ),
          ),
          longest: fc.oneof(fc.constant(100_000), fc.integer({ min: 0, max: 60 })),
          abandoned: fc.oneof(
            { weight: 5, arbitrary: fc.constant(0) },
            { weight: 1, arbitrary: fc.integer({ min: 1, max: 8 }) },
          ),
        }),
        { minLength: 1, maxLength: 40, size: 'max' },
      ),
    }),
  )

export const limitsOf = (
  subject: string,
  policies: TurnSchedule['policies'],
  costs: number[],
): Limit[] =>
  policies.map((terms, index) => ({
    subject,
    terms: { ...terms, localShare: 1 },
    cost: costs[index]!,
  }))

export const modelLimits = (policies: TurnSchedule['policies'], costs: number[]): TurnLimit[] =>
  policies.map(({ tag, algorithm, limit, windowMs, burst, align }, index) => ({
    name: tag,
    algorithm: algorithm as Counting,
    terms: {
      limit: BigInt(limit),
      window: BigInt(windowMs),
      burst: BigInt(burst),
      clock: align === 'clock',
      period: undefined,
    },
    cost: BigInt(costs[index]!),
  }))

const stock = turnsScript.replace(/^#!lua[^\n]*\n/, '')

/** Calls the script of turns. */
export async function turnOn(
  server: Server,
  ask: TurnAsk | TurnReport,
  now?: number,
): Promise<Turn> {
  const { keys, args } = turnCall(ask, lineTag(ask.limits), now)
  const answer = await server.send('EVAL', stock, `${keys.length}`, ...keys, ...args)
  const turn = decodeTurn(answer, ask.limits.length)
  if (!turn) throw new Error(`not a turn: ${answer}`)
  return turn
}

/** The answers of a store to a schedule, and the requests that were sent: with their place, and not given up. */
export async function playTurns(
  { policies, steps }: TurnSchedule,
  subject: string,
  take: (ask: TurnAsk, now: number) => Promise<Turn> | Turn,
  refund: (requests: StoreRequest[], now: number) => unknown,
) {
  let now = turnStart
  const turns: { now: number; turn: Turn; limits: Limit[]; isSent: boolean }[] = []
  for (const { wait, costs, longest, abandoned } of steps) {
    now += wait
    const given = turns.at(-abandoned)
    const place = given?.turn.place ?? 0
    // Only a request that waits can give its place up.
    if (abandoned > 0 && given?.isSent && place > now && place > given.now) {
      given.isSent = false
      // A log keeps the units of a place: it would take back its newest ones, which may be those of another turn.
      const limits = given.limits.map((limit) =>
        limit.terms.algorithm === 'sliding-log' ? { ...limit, cost: 0 } : limit,
      )
      await refund([{ mode: 'refund', limits, decidedAt: place }], now)
    }
    const limits = limitsOf(subject, policies, costs)
    const turn = await take({ do: 'take', limits, waitMs: longest, holdMs: 0 }, now)
    const isSent = turn.place !== null && turn.place <= now + longest
    turns.push({ now, turn, limits, isSent })
  }
  return turns
}
