/** Laws of a move: with requests at the same time, and with a tool that ends at any step, no quota starts anew and no unit is lost. */
import fc from 'fast-check'
import { describe, expect } from 'vitest'
import { moveShards } from '../../../../dev/shards/move.ts'
import { statusOf } from '../../../../dev/shards/status.ts'
import { moveKey, nameOf, placesOf } from '../../../../src/shards/move/places.ts'
import { arrive, depart } from '../../../../src/shards/move/transfer.ts'
import type { Limit } from '../../../../src/store/store.ts'
import { keysOf } from '../../../../src/store/upstash/script.ts'
import { property } from '../../../support/law.ts'
import { NEW, OLD, subjectFrom, useMovingShards, type Wire } from '../../../support/moving.ts'
import { allowed, left, policy, row, take } from '../../../support/sharded-redis.ts'

const { flush, isolate, plain, wireTo } = useMovingShards()

const algorithms = ['fixed-window', 'sliding-window', 'token-bucket', 'sliding-log'] as const
const paths = [
  ['eu-1', 'eu-3'],
  ['eu-2', 'eu-3'],
  ['eu-1', 'eu-1'],
] as const

/** A year: units come back only by refunds. */
const WINDOW_MS = 365 * 86_400_000

/** The tool ends at its n-th HTTP request: before the database gets it, or after. */
interface Death {
  at: number
  isDone: boolean
}

class Died extends Error {}

const BEGUN: [string, string] = [moveKey(), nameOf({ from: OLD, to: NEW })]

/** The databases as the tool sees them until it ends. `onRequest` runs at each of its requests. */
function databasesUntil(death?: Death, onRequest = () => {}) {
  let requests = 0
  return NEW.map((name) => {
    const wire = wireTo(name)
    const send: Wire = async (commands, signal) => {
      onRequest()
      const isLast = ++requests > (death?.at ?? Number.POSITIVE_INFINITY)
      if (isLast && !death!.isDone) throw new Died()
      const answers = await wire(commands, signal)
      if (isLast) throw new Died()
      return answers
    }
    return { name, send }
  })
}

/** Runs the tool again and again: it ends at each of these requests, and then runs to its end. */
async function moveWith(deaths: Death[], onRequest = () => {}) {
  for (const death of [...deaths, undefined]) {
    const plan = { from: OLD, to: NEW, databases: databasesUntil(death, onRequest) }
    await moveShards(plan).catch((error) => {
      if (!death) throw error
    })
    // As when the lock of a tool that has ended runs out.
    await wireTo(OLD[0]!)([['DEL', `${moveKey()}:lock`]], AbortSignal.timeout(10_000))
  }
}

const quotasOf = (limits: number[]): Limit[] =>
  limits.map((limit, index) => {
    const [from, to] = paths[index % paths.length]!
    const algorithm = algorithms[(index >> 1) % algorithms.length]!
    const terms = { ...policy, tag: `t${index}`, algorithm, limit, burst: limit }
    return row(subjectFrom(from, to), { terms: { ...terms, windowMs: WINDOW_MS } })
  })

const size = 'max' as const // otherwise most lists are too short to last until the tool has begun
const deaths = fc.array(fc.record({ at: fc.nat(60), isDone: fc.boolean() }), { maxLength: 4, size })
const limits = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 4, maxLength: 8, size })
/** A request: its quotas, and the isolate that gets it. */
const asks = (maxLength: number) => {
  const of = fc.uniqueArray(fc.nat(7), { minLength: 1, maxLength: 3 })
  return fc.array(fc.record({ of, by: fc.nat(2) }), { maxLength, size })
}
const halves = fc.array(fc.nat(7), { maxLength: 40, size })

describe('the laws of a move', () => {
  property(
    'With any deaths of the tool, requests at the same time get exactly the quota.',
    fc.record({ limits, before: asks(20), during: asks(120), deaths, halves }),
    async ({ limits, before, during, deaths, halves }) => {
      await flush()
      const isolates = [isolate(), isolate(), isolate()]
      const quotas = quotasOf(limits)
      const admitted = quotas.map(() => 0)
      const ask = async ({ of, by }: { of: number[]; by: number }) => {
        const indexes = [...new Set(of.map((index) => index % quotas.length))]
        const reply = await isolates[by]!.decide([take(...indexes.map((n) => quotas[n]!))])
        if (allowed(reply).every(Boolean)) for (const n of indexes) admitted[n]! += 1
      }
      /** A request that ends between the two steps, and one whose second step comes late. */
      const half = async (index: number) => {
        const limit = quotas[index % quotas.length]!
        const key = keysOf([take(limit)])
        const { from, to } = placesOf({ from: OLD, to: NEW })(limit.subject)
        if (from === to) return
        const signal = () => AbortSignal.timeout(10_000)
        const departed = await depart(wireTo(from), BEGUN, key, signal()).catch(() => [])
        if (index % 2) late.push(() => arrive(wireTo(to), departed, signal()))
      }
      const late: (() => Promise<void>)[] = []
      for (const one of before) await ask(one)
      // At each request of the tool, some clients send requests, so that several of them move the same key.
      const pending: Promise<unknown>[] = []
      const [waiting, ghosts] = [[...during], [...halves]]
      const asking = () => {
        pending.push(...waiting.splice(0, 3).map(ask), ...ghosts.splice(0, 1).map(half))
      }
      await moveWith(deaths, asking)
      while (waiting.length > 0) asking()
      await Promise.all(pending)
      for (const step of late) await step()
      await Promise.all(isolates.map((one) => one.settled()))
      const reply = await plain(NEW).decide([{ mode: 'peek', limits: quotas }])
      quotas.forEach(({ terms }, n) => {
        const [remaining, rest] = [left(reply)[n]!, limits[n]! - admitted[n]!]
        expect(rest).toBeGreaterThanOrEqual(0)
        // A bucket is credited without the parts that flow while a refund is in flight: less than one token in a year's window.
        if (terms.algorithm === 'token-bucket' && rest > 0)
          expect([rest, rest - 1]).toContain(remaining)
        else expect(remaining).toBe(rest)
      })
      for (const database of databasesUntil()) {
        expect((await statusOf(database, { from: OLD, to: NEW })).left).toBe(0)
      }
    },
    15,
    1, // the name of the move is in all databases
  )

  property(
    'With any deaths of the tool and no requests, every state arrives unchanged.',
    fc.record({ limits, before: asks(20), deaths, slots: fc.nat(4) }),
    async ({ limits, before, deaths, slots }) => {
      await flush()
      const quotas = quotasOf(limits)
      for (const { of } of before) {
        const indexes = [...new Set(of.map((index) => index % quotas.length))]
        await plain(OLD).decide([take(...indexes.map((n) => quotas[n]!))])
      }
      const held = row(quotas[0]!.subject, {
        terms: { ...policy, tag: 'slots', algorithm: 'concurrency', limit: 4 },
      })
      for (let n = 0; n < slots; n++) {
        await plain(OLD).decide([take({ ...held, slot: `id-${n}` })])
      }
      const peek = { mode: 'peek' as const, limits: [...quotas, held] }
      const states = async (names: string[]) => left(await plain(names).decide([peek]))
      const expected = await states(OLD)
      await moveWith(deaths)
      expect(await states(NEW)).toEqual(expected)
    },
    40,
    1, // the name of the move is in all databases
  )
})
