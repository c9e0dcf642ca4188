/** Reads the fields that a response already has. */
import { parameterOf, parseDictionary, parseIntegers, parseStrings } from './structured.ts'

/** The smallest number in fields of these names; infinity without one. Several proxies that each add a number make a list. */
export const leastIn = (headers: Headers, ...names: string[]): number =>
  least(
    names.flatMap((name) => parseIntegers(headers.get(name) ?? '') ?? []).map(({ value }) => value),
  )

export function leastOfDrafts(headers: Headers): number {
  const text = headers.get('RateLimit') ?? ''
  const list = parseStrings(text)?.map((member) => parameterOf(member, 'r')) ?? []
  const member = parseDictionary(text)?.get('remaining')
  return Math.min(least([...list, member]), leastIn(headers, 'RateLimit-Remaining'))
}

const least = (values: (string | undefined)[]) =>
  values
    .filter((value) => value !== undefined && /^-?\d+$/.test(value))
    .reduce((least, value) => Math.min(least, Number(value)), Number.POSITIVE_INFINITY)
