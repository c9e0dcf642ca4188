/** What a policy does beyond counting: outcomes, penalties, plans. */
import * as v from 'valibot'
import { type KeyPart, key } from './key.ts'
import { duration, list, MAX_UNITS, object, pattern, whole } from './shapes.ts'

const DAY_MS = 86_400_000

/** Statuses, both ends included. */
export type Statuses = [low: number, high: number]

const status = v.pipe(
  v.custom<string | number>(
    (input) =>
      /^([1-5]\d\d(-[1-5]\d\d)?|[1-5]xx)$/i.test(String(input)) && statuses(input) !== null,
    'a status like 401, "4xx" or "400-403"',
  ),
  v.transform((input) => statuses(input)!),
)

function statuses(input: unknown): Statuses | null {
  const text = String(input).toLowerCase()
  if (text.endsWith('xx')) return [Number(text[0]) * 100, Number(text[0]) * 100 + 99]
  const [low, high] = text.split('-').map(Number) as [number, number?]
  return high === undefined || low <= high ? [low, high ?? low] : null
}

export const countOnly = list(status)

/** What refusals lead to, parsed. */
export interface Penalty {
  after: number
  withinMs: number
  banMs: number
  maxMs: number
}

/** Bans by operators only: no number of refusals leads to one. */
const manualPenalty: Penalty = { after: MAX_UNITS, withinMs: 1, banMs: 1, maxMs: MAX_UNITS }

const byRefusals = v.pipe(
  object(
    { after: whole(1), within: duration, ban: duration, max: v.optional(duration) },
    ({ ban, max }, problem) => {
      if (typeof ban === 'number' && typeof max === 'number' && max < ban) {
        problem(['max'], 'at least as long as ban')
      }
    },
  ),
  v.transform(
    ({ after, within, ban, max }): Penalty => ({
      after,
      withinMs: within,
      banMs: ban,
      maxMs: max ?? Math.max(ban, DAY_MS),
    }),
  ),
)

export const penalty = v.lazy(
  (input): v.GenericSchema<unknown, Penalty> =>
    typeof input === 'string'
      ? v.pipe(
          v.literal('manual', '"manual", or an object of after, within, ban and max'),
          v.transform(() => manualPenalty),
        )
      : byRefusals,
)

/** What tells the plan of a request, parsed. */
export interface PlanSource {
  key: KeyPart
  table: string | undefined
}

const single = v.pipe(
  key,
  v.check((parts) => parts.length === 1, 'one part'),
  v.transform((parts) => parts[0]!),
)
const looked = object({ key: single, table: v.string('the name of a table') })

export const plan = v.lazy(
  (input): v.GenericSchema<unknown, PlanSource> =>
    typeof input === 'object' && input !== null && 'table' in input
      ? looked
      : v.pipe(
          single,
          v.transform((key) => ({ key, table: undefined })),
        ),
)

const name = pattern('a name of a plan', /^.{1,64}$/s)

/** An object by names; those that valibot passes over in silence are a problem. */
const byName = <V extends v.GenericSchema>(
  expected: string,
  names: v.GenericSchema<string, string>,
  values: V,
) =>
  v.pipe(
    v.custom<Record<string, unknown>>(
      (input) => typeof input === 'object' && input !== null && !Array.isArray(input),
      expected,
    ),
    v.check(
      (input) =>
        !['__proto__', 'prototype', 'constructor'].some((one) => Object.hasOwn(input, one)),
      'names other than __proto__, prototype and constructor',
    ),
    v.record(names, values),
  )

export const limits = byName('an object like { free: 100, pro: 5000 }', name, whole(1))

/** Values to look up, by table and name. */
export const tables = byName(
  'an object of tables',
  v.string(),
  byName('an object of texts', v.string(), v.string('a text')),
)
