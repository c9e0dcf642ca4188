/** Writes the requests of a call as texts for the script, and checks them. The script checks only the version. lua/README.md is the contract. */
import { MAX_MS } from '../../base/duration.ts'
import { StoreError } from '../../base/errors.ts'
import { capacityOf, hasOwnKey, largestQuota } from '../../base/units.ts'
import { withFloor } from '../algorithms/index.ts'
import { standsIn } from '../line.ts'
import type { Idempotency, Limit, StoreRequest, Terms } from '../store.ts'
import type { Codec } from './part.ts'

export const algorithmNames: Record<Terms['algorithm'], string> = {
  'fixed-window': 'fixed',
  'sliding-window': 'sliding',
  'token-bucket': 'bucket',
  'sliding-log': 'log',
  concurrency: 'slots',
  distinct: 'distinct',
}
const modes: Record<StoreRequest['mode'], 'charges' | 'peeks' | 'operates'> = {
  take: 'charges',
  follow: 'charges',
  refund: 'charges',
  debt: 'charges',
  peek: 'peeks',
  reset: 'operates',
  ban: 'operates',
  unban: 'operates',
  override: 'operates',
  restore: 'operates',
  leave: 'peeks',
}

/** By default a time or a duration, ms. */
export const isWhole = (value: number, least: number, most = MAX_MS) =>
  Number.isInteger(value) && value >= least && value <= most
export const isUnits = (value: number, least: number) =>
  isWhole(value, least, Number.MAX_SAFE_INTEGER)
export const isName = (text: string) => /^[\w-]+$/.test(text)
export const isId = (text: string) => /^[\w-]{1,64}$/.test(text)

/** Throws if a value of a call is invalid, before it is made. It is a bug, since the configuration and the API check their values. */
export function check(isValid: boolean, place: string, what: string): asserts isValid {
  if (!isValid) throw new StoreError('internal', `ERR sluice: ${place}: unexpected ${what}`)
}

/** The arguments of limits that depend on the terms alone, without and with the option, if that too does: checked and written once. */
const written = new WeakMap<Terms, { text: string; whole: string | undefined }>()

export function termsText(terms: Terms, place: string) {
  const known = written.get(terms)
  if (known !== undefined) return known
  const { tag, algorithm, limit, windowMs, burst, align } = terms
  check(isName(tag), place, 'tag')
  check(Object.hasOwn(algorithmNames, algorithm), place, 'algorithm')
  check(isWhole(windowMs, 1), place, 'window')
  const most = largestQuota(algorithm, windowMs)
  check(isWhole(limit, 1, most), place, 'limit')
  check(isWhole(burst, 1, most), place, 'burst')
  check(align === 'clock' || align === 'first-request', place, 'align')
  const text = textOf(terms)
  const hasConstantOption = algorithm !== 'concurrency' && algorithm !== 'distinct'
  const option = hasConstantOption ? optionOf(terms, {}, 'take', place) : ''
  const both = { text, whole: hasConstantOption ? `${text}${option},` : undefined }
  written.set(terms, both)
  return both
}

const textOf = ({ tag, algorithm, limit, windowMs }: Terms) =>
  `;${tag}:${algorithmNames[algorithm]},${limit},${windowMs},`

/** The option of a limit: the burst, the slot, the values, the calendar period, or when a window opens. */
export function optionOf(
  terms: Terms,
  limit: Pick<Limit, 'period' | 'slot' | 'values'>,
  mode: StoreRequest['mode'],
  place: string,
  codec: Codec = {},
) {
  const { period } = limit
  switch (terms.algorithm) {
    case 'token-bucket':
      return terms.burst
    case 'concurrency':
    case 'distinct':
      return codec[terms.algorithm]!(limit, modes[mode] === 'charges', place)
    case 'fixed-window': {
      if (!period) return terms.align === 'clock' ? 'clock' : ''
      const [start, end, nextEnd] = period
      const isValid =
        period.length === 3 &&
        period.every((time) => isWhole(time, 0)) &&
        start < end &&
        end < nextEnd
      check(isValid, place, 'period')
      return period.join('/')
    }
    default:
      return ''
  }
}

/** The penalty of a limit. A refund and a debt have none: they are never refused. */
export const penaltyOf = ({ mode }: StoreRequest, { penalty }: Limit) =>
  mode === 'refund' || mode === 'debt' ? undefined : penalty

/**
 * Writes one request, with a text for each limit and each penalty.
 * @param keyIndex the index of a limit's key in KEYS, from 1
 * @param recordIndex that of the record of its subject
 */
export function requestText(
  request: StoreRequest,
  number: number,
  keyIndex: (limit: Limit) => number,
  recordIndex: (limit: Limit) => number,
  codec: Codec,
): string {
  const { mode, limits } = request
  const place = `request ${number}`
  check(limits.length > 0, place, 'number of limits')
  let text = mode === 'take' ? mode : modeText(request, place)
  let hasPenalty = false
  for (const limit of limits) {
    const { terms, cost, floor = 0, period, override } = limit
    if (!isUnits(cost, 0)) check(false, place, 'cost')
    const { text: own, whole } = termsText(terms, place)
    if (standsIn(request, limit))
      text += ` ${recordIndex(limit)}${codec.line!.write(request, limit, place)}`
    // Most limits: nothing but the key depends on the request.
    if (whole && mode === 'take' && floor === 0 && !(period || override || limit.penalty)) {
      text += ` ${keyIndex(limit)}${whole}${cost}`
      continue
    }
    const { algorithm } = terms
    const owes = algorithm !== 'concurrency' && algorithm !== 'distinct'
    check(mode !== 'debt' || owes, place, 'algorithm of a debt')
    const units = mode === 'refund' ? Math.min(cost, mostRefunded(terms)) : cost
    check(isUnits(floor, 0) && floor <= capacityOf(terms.algorithm, terms), place, 'floor')
    const sent = withFloor(terms.algorithm, terms, floor)
    const head = sent === terms ? own : textOf(sent)
    if (override) text += ` ${recordIndex(limit)}${codec.override!.write(request, limit, place)}`
    text += ` ${keyIndex(limit)}${head}${optionOf(sent, limit, mode, place, codec)},${units}`
    const penalty = penaltyOf(request, limit)
    if (!penalty) continue
    hasPenalty = true
    text += ` ${recordIndex(limit)}${codec.penalty!.write(request, penalty, place)}`
  }
  if (mode === 'override')
    check(
      limits.every(({ override }) => override),
      place,
      'mode',
    )
  if (mode === 'ban') check(hasPenalty, place, 'mode (a ban needs a penalty)')
  if (limits.length > 1 || hasPenalty) check(hasDistinctStates(text), place, 'tag (repeated)')
  return text
}

function modeText(request: StoreRequest, place: string): string {
  const { mode } = request
  check(Object.hasOwn(modes, mode), place, 'mode')
  const decidedAt = mode === 'refund' ? request.decidedAt : undefined
  if (decidedAt === undefined) return mode
  check(isWhole(decidedAt, 0), place, 'decidedAt')
  return `${mode}@${decidedAt}`
}

/** A bucket multiplies the units of a refund with the window, which must be exact in a double. No charge has more units. */
const mostRefunded = ({ algorithm, windowMs }: Terms) =>
  algorithm === 'token-bucket' ? Math.floor(Number.MAX_SAFE_INTEGER / windowMs) : Infinity

/** True if no two limits of a request name the same state: each would be charged without the other. */
function hasDistinctStates(text: string): boolean {
  const states = text.match(/\d+;[\w-]+/g)!
  return new Set(states).size === states.length
}

/** Writes the header: the version, the features that the call needs, and the time. */
export function headerText(
  requests: StoreRequest[],
  now: number | undefined,
  isIdempotent: boolean,
): string {
  const features = isIdempotent ? 'idempotency' : areSpecial(requests) ? 'special' : ''
  return `3:${features}:${now ?? ''}`
}

function areSpecial(requests: StoreRequest[]): boolean {
  for (const request of requests) {
    if (modes[request.mode] === 'operates') return true
    for (const limit of request.limits) {
      const { terms, penalty, override } = limit
      if (penalty || override || hasOwnKey(terms.algorithm) || standsIn(request, limit)) return true
    }
  }
  return false
}

/** @param keys KEYS of the call, with the idempotency key first */
export function idempotencyText({ fingerprint, forMs }: Idempotency, keys: string[]): string {
  check(keys.indexOf(keys[0]!, 1) === -1, 'idempotency', 'key (used by a limit)')
  check(isId(fingerprint), 'idempotency', 'fingerprint')
  check(isWhole(forMs, 1), 'idempotency', 'forMs')
  return `${fingerprint}:${forMs}`
}

export function checkCall(requests: number, keys: number, now: number | undefined): void {
  if (requests < 1 || requests > 128) check(false, 'call', 'number of requests')
  if (keys > 128) check(false, 'call', 'number of keys')
  if (now !== undefined && !isWhole(now, 0)) check(false, 'call', 'now')
}
