/** Mistakes of calls by name and key. Each is a `TypeError` that tells what to write. */
import { type ConfigProblem, lineOf, show } from '../core/base/errors.ts'
import { MAX_UNITS } from '../core/base/units.ts'
import type { KeyValues } from '../core/program/explicit-key.ts'

export const wrong = (call: string, problem: ConfigProblem) =>
  new TypeError(`${call}: ${lineOf(problem)}`)

export const mistake = (call: string, path: string, expected: string, value: unknown) =>
  wrong(call, { path, expected, got: show(value) })

/** The problem of a name that is not in a list of names. */
export const noneOf = (path: string, names: string[], name: unknown): ConfigProblem => ({
  path,
  expected: names.map((one) => JSON.stringify(one)).join(' or '),
  got: show(name),
})

/** Reads the two forms of a call: one limit, or a list of them. What is no list is a name, which the search for the limit checks. */
export function formOf<Name, Options>(
  call: string,
  [one, second, third]: unknown[],
  more?: readonly string[],
): [readonly (readonly [Name, KeyValues])[], Partial<Options>] {
  if (!Array.isArray(one)) return [[[one, second]] as never, optionsOf(call, third, more)]
  one.forEach((entry, index) => {
    if (!Array.isArray(entry)) throw mistake(call, `limits[${index}]`, '[name, key]', entry)
  })
  return [one, optionsOf(call, second, more)]
}

/** What the options of calls may have, whoever carries them: a call moves from one carrier to another as it is. */
const OPTIONS = ['cost', 'plan', 'signal', 'env', 'waitUntil', 'decidedAt', 'slot']

/**
 * Callers without types may send anything, such as the units alone. What is unknown would charge something else.
 * @param more the options that this carrier has besides. Defaults to none
 */
export function optionsOf<Options extends object>(
  call: string,
  given: unknown,
  more: readonly string[] = [],
): Options {
  const options = (given ?? {}) as Options
  const expected = 'an object such as { cost: 3 }'
  if (typeof options !== 'object') throw mistake(call, 'options', expected, given)
  const known = [...OPTIONS, ...more]
  for (const name of Object.keys(options))
    if (!known.includes(name))
      throw wrong(call, { path: 'options', expected: `some of ${known.join(', ')}`, got: name })
  return options
}

/** Callers without types may send anything, and all objects have one text. */
export function checkKey(call: string, key: unknown): void {
  const values: unknown[] = Array.isArray(key) ? key : [key]
  const isKey = values.every(
    (one) => typeof one === 'string' || Number.isSafeInteger(one) || (one === null && one !== key),
  )
  if (isKey && values.length > 0 && values.length <= 16) return
  throw mistake(call, 'key', 'a text, a whole number, or a list of 1 to 16 of them', key)
}

export function checkCost(call: string, cost: number | undefined): void {
  if (cost === undefined) return
  if (Number.isSafeInteger(cost) && cost >= 0 && cost <= MAX_UNITS) return
  throw mistake(call, 'cost', `a whole number from 0 to ${MAX_UNITS}`, cost)
}
