import type { HeaderSet } from '../../config/schema/headers.ts'
import type { FieldValues } from './sets.ts'
import { parameterOf, parseDictionary, parseIntegers, parseStrings } from './structured.ts'

/**
 * Adds the fields of a set to a response that may already have such fields, from an origin or an inner limiter. As the drafts require
 * of intermediaries, the result is never less strict than the existing fields.
 *
 * The lists of draft-11 are joined. All fields are replaced or kept together if they cannot be joined: single numbers, lists of
 * another draft, and lists that name one of these policies. The fields with less remaining are used; on a tie, the existing ones
 * stay unchanged. Existing values without a number are ignored.
 */
export function merge(headers: Headers, { set, fields, remaining }: FieldValues): void {
  let present = false
  for (const [name] of fields) present ||= headers.has(name)
  if (present && set === 'draft-11' && canJoin(headers, fields)) {
    for (const [name, value] of fields) {
      if (headers.get(name)) headers.append(name, value)
      else headers.set(name, value) // Appending to an empty value would write a leading comma.
    }
    return
  }
  if (present && existingRemaining(headers, set) <= remaining) return
  if (typeof set === 'object') for (const name of companions(set)) headers.delete(name)
  for (const [name, value] of fields) headers.set(name, value)
}

/** True if the existing fields are lists of draft-11 that name none of the added policies. */
function canJoin(headers: Headers, fields: FieldValues['fields']): boolean {
  const names = (text: string) => parseStrings(text)?.map(({ value }) => value)
  const added = new Set(fields.flatMap(([, value]) => names(value)!))
  return fields.every(([name]) => {
    const existing = headers.get(name)
    return !existing || names(existing)?.every((policy) => !added.has(policy))
  })
}

/** Returns the smallest number that a client may read as remaining in the existing fields; infinity if there is none. */
function existingRemaining(headers: Headers, set: HeaderSet): number {
  const text = (name: string) => headers.get(name) ?? ''
  // Several proxies that each add a number make a list.
  const numbers = (name: string) => parseIntegers(text(name))?.map(({ value }) => value) ?? []
  if (set === 'github') return least(numbers('x-ratelimit-remaining'))
  if (typeof set === 'object') return least(numbers(`${set.prefix}Remaining`))
  // The existing fields may follow any draft.
  const list = parseStrings(text('RateLimit'))?.map((member) => parameterOf(member, 'r'))
  const member = parseDictionary(text('RateLimit'))?.get('remaining')
  return least([...(list ?? []), member, ...numbers('RateLimit-Remaining')])
}

const least = (values: (string | undefined)[]) =>
  values
    .filter((value) => value !== undefined && /^-?\d+$/.test(value))
    .reduce((least, value) => Math.min(least, Number(value)), Number.POSITIVE_INFINITY)

/** Returns existing fields outside of the set that describe the same quota, and would contradict the added fields. */
const companions = ({ prefix }: Extract<HeaderSet, object>): string[] =>
  /rate-?limit-$/i.test(prefix) ? [`${prefix}Used`, `${prefix}Resource`] : []
