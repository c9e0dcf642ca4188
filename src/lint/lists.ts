/** Entries of `allow` and `deny`. */
import type { Condition } from '../config/schema/condition.ts'
import { covers } from './covers.ts'
import { type Found, type ListRule, titleOf } from './facts.ts'

/** An entry without a condition, with one that every request meets, or with a network of all addresses. */
export const takesAll: ListRule = (entry) => {
  const { condition, list, policies, at } = entry
  const network = condition.ip?.find((text) => text.endsWith('/0'))
  if (policies || !covers({ ...condition, ip: network ? undefined : condition.ip }, {})) return []
  const requests = network ? `every request from ${network}` : 'every request'
  return {
    code: 'list-takes-all',
    path: at,
    message: `${titleOf(entry)} takes everything: ${requests} ${list === 'deny' ? 'is refused' : 'skips every limit'}.`,
    hint: 'Say which requests the entry is about.',
  }
}

const MIN_SECRET = 16 // characters, as of the decision API's tokens

/** Whether any client could send the headers that a condition asks for: none of them holds a secret. */
const asksGuessable = ({ header }: Condition): boolean =>
  header?.every(
    ({ values }) =>
      !values || values.some((text) => text.length < MIN_SECRET || /^\*|\*$/.test(text)),
  ) ?? false

export const spoofableList: ListRule = (entry) => {
  const { list, condition, at } = entry
  // A preflight does nothing (the Fetch standard's CORS protocol).
  const preflights = condition.method?.every((method) => method === 'OPTIONS')
  if (list === 'deny' || condition.ip || preflights) return []
  const found = (where: string, does: string, { header = [] }: Condition): Found => ({
    code: 'spoofable-list',
    path: `${at}${where}.header`,
    message: `${titleOf(entry)} lets any client that ${does} ${header.map(({ name }) => name).join(', ')} skip limits.`,
    hint: 'Add ip, or a header whose value is a secret of at least 16 characters.',
  })
  return [
    ...(asksGuessable(condition) ? [found('', 'sends', condition)] : []),
    ...(condition.not ?? []).flatMap((taken, index) =>
      taken.header ? [found(`.not[${index}]`, 'leaves out', taken)] : [],
    ),
  ]
}
