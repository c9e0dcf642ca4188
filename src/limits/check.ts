/** Mistakes of calls by name and key. Each is a `TypeError` that tells what to write. */
import { type ConfigProblem, messageOf } from '../core/base/errors.ts'
import { show } from '../core/base/show.ts'
import { MAX_UNITS } from '../core/base/units.ts'
import type { KeyValues } from '../core/program/explicit-key.ts'

export const wrong = (call: string, problem: ConfigProblem) =>
  new TypeError(`${call}: ${problem.path}: ${messageOf(problem)}`)

/** Reads the two forms of a call: one limit, or a list of them. What is no list is a name, which the search for the limit checks. */
export function formOf<Name, Options>(
  call: string,
  [one, second, third]: unknown[],
): [readonly (readonly [Name, KeyValues])[], Partial<Options>] {
  if (!Array.isArray(one)) return [[[one, second]] as never, third ?? {}]
  const odd = one.findIndex((entry) => !Array.isArray(entry))
  if (odd >= 0)
    throw wrong(call, { path: `limits[${odd}]`, expected: '[name, key]', got: show(one[odd]) })
  return [one, second ?? {}]
}

/** Callers without types may send anything, and all objects have one text. */
export function checkKey(call: string, key: unknown): void {
  const values: unknown[] = Array.isArray(key) ? key : [key]
  const isKey = values.every(
    (one) => typeof one === 'string' || Number.isSafeInteger(one) || (one === null && one !== key),
  )
  if (isKey && values.length > 0 && values.length <= 16) return
  const expected = 'a text, a whole number, or a list of 1 to 16 of them'
  throw wrong(call, { path: 'key', expected, got: show(key) })
}

export function checkCost(call: string, cost: number | undefined): void {
  if (cost === undefined) return
  if (Number.isSafeInteger(cost) && cost >= 0 && cost <= MAX_UNITS) return
  const expected = `a whole number from 0 to ${MAX_UNITS}`
  throw wrong(call, { path: 'cost', expected, got: show(cost) })
}
