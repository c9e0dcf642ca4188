import type { HeaderSet } from '../../config/schema/headers.ts'
import type { Told } from './sets.ts'
import { parameterOf, parseDictionary, parseIntegers, parseStrings } from './structured.ts'

/**
 * Puts what a set tells into the fields of a response that may have such fields already, of an origin or of an inner limiter:
 * tightened, never loosened, as the drafts ask of an intermediary. The lists of draft-11 are joined. Where two cannot stand
 * together (one number a field; a list of another draft, or one that names a policy of ours) the one with less remaining stays,
 * whole; on a tie theirs, which is then not altered. Values that say no number count as absent.
 */
export function merge(headers: Headers, { set, fields, remaining }: Told): void {
  const present = fields.some(([name]) => headers.has(name))
  if (present && set === 'draft-11' && joins(headers, fields)) {
    for (const [name, value] of fields) {
      if (headers.get(name)) headers.append(name, value)
      else headers.set(name, value) // after an empty one a comma would lead
    }
    return
  }
  if (present && theirRemaining(headers, set) <= remaining) return
  for (const name of companions(set)) headers.delete(name)
  for (const [name, value] of fields) headers.set(name, value)
}

/** Whether what is there makes one list with ours. */
function joins(headers: Headers, fields: Told['fields']): boolean {
  const names = (text: string) => parseStrings(text)?.map(({ value }) => value)
  const ours = new Set(fields.flatMap(([, value]) => names(value)!))
  return fields.every(([name]) => {
    const theirs = headers.get(name)
    return !theirs || names(theirs)?.every((policy) => !ours.has(policy))
  })
}

/** The least that a client may read as remaining in fields like those of a set; infinity where it reads nothing. */
function theirRemaining(headers: Headers, set: HeaderSet): number {
  const text = (name: string) => headers.get(name) ?? ''
  // Of proxies that each add a number a list is left.
  const numbers = (name: string) => parseIntegers(text(name))?.map(({ value }) => value) ?? []
  if (set === 'github') return least(numbers('x-ratelimit-remaining'))
  if (typeof set === 'object') return least(numbers(`${set.prefix}Remaining`))
  // Whichever draft they are of.
  const list = parseStrings(text('RateLimit'))?.map((member) => parameterOf(member, 'r'))
  const member = parseDictionary(text('RateLimit'))?.get('remaining')
  return least([...(list ?? []), member, ...numbers('RateLimit-Remaining')])
}

const least = (values: (string | undefined)[]) =>
  values
    .filter((value) => value !== undefined && /^-?\d+$/.test(value))
    .reduce((least, value) => Math.min(least, Number(value)), Number.POSITIVE_INFINITY)

/** Fields beside a set's own that tell of the same numbers, and would be wrong beside ours. */
const companions = (set: HeaderSet): string[] =>
  typeof set === 'object' && /rate-?limit-$/i.test(set.prefix)
    ? [`${set.prefix}Used`, `${set.prefix}Resource`]
    : []
