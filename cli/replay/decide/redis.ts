/** The exact path: the deployed code makes the limits, and the deployed script decides them at the times of the lines. */
import { createHash } from 'node:crypto'
import { canonical } from '../../../src/core/base/part.ts'
import { whenKnown } from '../../../src/core/base/when-known.ts'
import type { Config, Policy } from '../../../src/core/config/parse.ts'
import type { StoreRequest } from '../../../src/core/connection/store.ts'
import { pack } from '../../../src/core/connection/upstash/pack.ts'
import { encode, type ScriptCall } from '../../../src/core/connection/upstash/script.ts'
import { prepare } from '../../../src/core/decide/decide.ts'
import type { PolicyLimit } from '../../../src/core/decide/limit.ts'
import type { Match } from '../../../src/core/decide/matched.ts'
import type { Pending } from '../../../src/core/decide/question.ts'
import { correctionsOf } from '../../../src/core/decide/settle.ts'
import type { NameSubject } from '../../../src/core/decide/subject.ts'
import { nameValues } from '../../../src/features/distinct/stages.ts'
import { type Asked, type Engine, responseOf } from './engine.ts'
import type { PrivateRedis } from './private-redis.ts'
import { codec } from './script-parts.ts'
import type { Decided, Verdict } from './verdict.ts'
import { Answers, deniedVerdict } from './verdicts.ts'

/** A verdict without Redis, or what Redis decides. */
type Rules = Verdict | Sent

interface Sent {
  /** The arguments of the batch script after the times, for a logged status. */
  argsOf(status: number | undefined): string[]
  /** The limits in the order of the configuration, with the places of their marks in the reply. */
  limits: { policy: Policy; mark: number; ban: number | undefined }[]
  /** The number of marks of a run. */
  width: number
}

/** The lines of one call of the script. */
const LINES = 256

/** How many lines come between two looks at the number of keys. */
const SWEEP_AFTER = 50_000

/** The longest subject that is not hashed, in characters. */
const MAX_SUBJECT = 256

const nameSubject: NameSubject = (parts) => {
  const text = canonical(parts)
  return text.length <= MAX_SUBJECT ? text : digest(text)
}
const digest = (text: string) => createHash('sha256').update(text).digest('base64url')
const parts = {
  nameSubject,
  nameValues: (match: Match) => nameValues(match, (key) => digest(canonical(key))),
  denialCache: undefined,
  shield: undefined,
}

let engines = 0

export function createRedisEngine(
  redis: PrivateRedis,
  { policies }: Pick<Config, 'policies'>,
  { wholeSeconds }: { wholeSeconds: boolean },
): Engine<Rules> {
  engines += 1
  const namespace = `${engines}`
  const noAnswers = new Answers()
  let unswept = 0
  const longestMs = Math.max(0, ...policies.map(({ windowMs }) => windowMs))

  const callOf = (requests: StoreRequest[]): ScriptCall =>
    encode(pack([requests])[0]!.requests, undefined, undefined, namespace, codec)

  function argsOf({ requests }: Pending, status: number | undefined): string[] {
    const { keys, args } = callOf(requests)
    const [header = '', ...texts] = args
    const refunds = refundsOfLine(requests, status)
    const refund = refunds.length > 0 ? callOf(refunds.map((one) => one.refund)) : undefined
    const refundKeys = refund?.keys ?? []
    const counts = [keys, texts, refundKeys, refunds].map(({ length }) => length)
    return [
      `:${header.split(':')[1]}:${counts.join(':')}`,
      ...keys,
      ...texts,
      ...refundKeys,
      ...refunds.map(({ needs }, index) => `${needs} ${refund!.args[index + 1]}`),
    ]
  }

  function sentOf(pending: Pending): Sent {
    if (pending.limits.some(({ terms }) => terms.countOnly)) {
      const known = new Map<number | undefined, string[]>()
      return {
        ...marksOf(pending),
        argsOf(status) {
          if (!known.has(status)) known.set(status, argsOf(pending, status))
          return known.get(status)!
        },
      }
    }
    const args = argsOf(pending, undefined)
    return { ...marksOf(pending), argsOf: () => args }
  }

  /** Sends lines, which are decided in this order. */
  function send(asked: Asked<Rules>[]): Promise<unknown> {
    const args: string[] = []
    for (const { line, spread, burst, rules } of asked) {
      if (!('limits' in rules)) continue
      const [head, ...others] = rules.argsOf(line.status)
      args.push(`${spread}:${wholeSeconds ? burst : ''}${head}`, ...others)
    }
    return args.length > 0 ? redis.decide(args) : Promise.resolve('')
  }

  return {
    rulesOf: (matched) =>
      whenKnown(prepare({ matched }, parts), (pending) => {
        if ('limits' in pending) return sentOf(pending)
        return matched.denied ? deniedVerdict(matched.denied) : noAnswers.verdict
      }),
    async decide(asked) {
      const batches: { asked: Asked<Rules>[]; marks: Promise<unknown> }[] = []
      for (let from = 0; from < asked.length; from += LINES) {
        const some = asked.slice(from, from + LINES)
        batches.push({ asked: some, marks: send(some) })
      }
      const decided: Decided[] = []
      for (const { asked, marks } of batches) {
        const next = verdictReader(await marks, noAnswers)
        for (const { line, rules } of asked) {
          const spread = 'limits' in rules ? next(rules) : rules
          decided.push({
            line,
            spread,
            burst: 'limits' in rules && wholeSeconds ? next(rules) : spread,
          })
        }
      }
      unswept += asked.length
      if (unswept >= SWEEP_AFTER) {
        unswept = 0
        await redis.sweep(asked.at(-1)!.burst, longestMs)
      }
      return decided
    },
  }
}

/** The refunds of an admitted line, each with the numbers of the requests that must be admitted for it. */
function refundsOfLine(requests: Pending['requests'], status: number | undefined) {
  if (status === undefined) return []
  const hasEnforced = requests[0]!.limits[0]!.terms.mode === 'enforce'
  return requests.flatMap(({ limits }, index) => {
    const charged = limits.filter(({ cost }) => cost > 0)
    const charges = new Map(charged.map((limit) => [limit, { decidedAt: 0 }]))
    const needs = `${hasEnforced ? 1 : index + 1},${index + 1}`
    return correctionsOf(charges, responseOf(status)).map((refund) => ({ refund, needs }))
  })
}

/** The places of the marks in the reply of the batch script. */
function marksOf({ limits, requests }: Pending): Pick<Sent, 'limits' | 'width'> {
  const places = new Map<PolicyLimit, { mark: number; ban: number | undefined }>()
  let width = 0
  for (const request of requests) {
    for (const [index, limit] of request.limits.entries()) {
      places.set(limit, { mark: width + index, ban: undefined })
    }
    width += request.limits.length
    for (const limit of request.limits) if (limit.penalty) places.get(limit)!.ban = width++
  }
  return { limits: limits.map((limit) => ({ policy: limit.terms, ...places.get(limit)! })), width }
}

/**
 * Reads the reply of the batch script, one verdict after the other.
 * @throws {Error} if the reply is one
 */
function verdictReader(reply: unknown, noAnswers: Answers): (sent: Sent) => Verdict {
  if (reply instanceof Error) throw reply
  const marks = String(reply)
  let at = 0
  return ({ limits, width }) => {
    let answers = noAnswers
    for (const { policy, mark, ban } of limits) {
      const isBanned = ban !== undefined && marks[at + ban] === '!'
      answers = answers.and(policy, marks[at + mark] === '+' && !isBanned)
    }
    at += width
    return answers.verdict
  }
}
