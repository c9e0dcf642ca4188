import * as v from 'valibot'
import { list } from './shapes.ts'

/** A status such as `401`, a class such as `'4xx'`, or a range such as `'400-403'`. */
export type StatusRange = number | `${number}xx` | `${number}-${number}`

/** A range of statuses, both ends included. */
type StatusInterval = [low: number, high: number]

function statuses(input: unknown): StatusInterval | undefined {
  if (typeof input !== 'string' && typeof input !== 'number') return undefined
  const text = String(input).toLowerCase()
  if (!/^([1-5]\d\d(-[1-5]\d\d)?|[1-5]xx)$/.test(text)) return undefined
  if (text.endsWith('xx')) return [Number(text[0]) * 100, Number(text[0]) * 100 + 99]
  const [low, high] = text.split('-').map(Number) as [number, number?]
  return high === undefined || low <= high ? [low, high ?? low] : undefined
}

export const countOnly = list(
  v.pipe(
    v.custom<StatusRange>(
      (input) => statuses(input) !== undefined,
      'a status like 401, "4xx" or "400-403"',
    ),
    v.transform((input) => statuses(input)!),
  ),
)
