import type { Decision, FieldSet } from '../../base/decision.ts'
import { draft11 } from './sets.ts'
import { leastOfDrafts, parseStrings } from './structured.ts'

/**
 * Adds the fields of a set for a decision to a response that may already have such fields, from an origin or an inner limiter. As the drafts require
 * of intermediaries, the result is never less strict than the existing fields.
 *
 * The lists of draft-11 are joined. All fields are replaced or kept together if they cannot be joined: single numbers, lists of
 * another draft, and lists that name one of these policies. The fields with less remaining are used; on a tie, the existing ones
 * stay unchanged. Existing values without a number are ignored.
 */
export function merge(headers: Headers, set: FieldSet, decision: Decision): void {
  const values = set.valuesFor(decision)
  if (!values) return
  const { fields, remaining } = values
  let present = false
  for (const [name] of fields) present ||= headers.has(name)
  if (present && set === draft11 && canJoin(headers, fields)) {
    for (const [name, value] of fields) {
      if (headers.get(name)) headers.append(name, value)
      else headers.set(name, value) // Appending to an empty value would write a leading comma.
    }
    return
  }
  const { remainingIn = leastOfDrafts } = set
  if (present && remainingIn(headers) <= remaining) return
  for (const name of set.companions) headers.delete(name)
  for (const [name, value] of fields) headers.set(name, value)
}

/** True if the existing fields are lists of draft-11 that name none of the added policies. */
function canJoin(headers: Headers, fields: readonly [name: string, value: string][]): boolean {
  const names = (text: string) => parseStrings(text)?.map(({ value }) => value)
  const added = new Set(fields.flatMap(([, value]) => names(value)!))
  return fields.every(([name]) => {
    const existing = headers.get(name)
    return !existing || names(existing)?.every((policy) => !added.has(policy))
  })
}
