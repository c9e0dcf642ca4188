/** Rules for the entries of `allow` and `deny`. */
import type { Condition } from '../core/config/schema/condition.ts'
import { covers } from './covers.ts'
import { type Found, type ListRule, titleOf } from './facts.ts'

/** Finds an entry without a condition, with a condition that every request matches, or with a network of all addresses. */
export const takesAll: ListRule = (entry) => {
  const { condition, list, policies, at } = entry
  const network = condition.ip?.find((text) => text.endsWith('/0'))
  if (policies || !covers({ ...condition, ip: network ? undefined : condition.ip }, {})) return []
  const requests = network ? `every request from ${network}` : 'every request'
  return {
    code: 'list-takes-all',
    path: at,
    message: `${titleOf(entry)} matches everything: ${requests} ${list === 'deny' ? 'is refused' : 'skips every limit'}.`,
    hint: 'Add a condition that selects the requests.',
  }
}

const MIN_SECRET = 16 // characters, like the tokens of the decision API

/** The headers and query parameters of a condition. A client chooses them. */
export const chosenIn = ({ header = [], query = [] }: Condition) => [...header, ...query]

/** Their names, for messages. */
export const namesIn = (condition: Condition): string =>
  chosenIn(condition)
    .map(({ name }) => name)
    .join(', ')

/** A preflight has no effect on the origin (CORS protocol of the Fetch standard). */
export const isPreflight = ({ method }: Condition): boolean =>
  method?.every((one) => one === 'OPTIONS') ?? false

const isSecret = ({ values }: ReturnType<typeof chosenIn>[number]) =>
  values?.every((text) => text.length >= MIN_SECRET && !/^\*|\*$/.test(text)) ?? false

/** Reports whether a condition requires a header or a parameter with a secret, which a client cannot know. */
export const holdsSecret = (condition: Condition): boolean => chosenIn(condition).some(isSecret)

/** Reports whether a condition requires headers or parameters and none of them contains a secret, so that any client can send them. */
export const isGuessable = (condition: Condition): boolean =>
  chosenIn(condition).length > 0 && !holdsSecret(condition)

/** Reports whether a condition requires what a client can neither choose nor invent. */
export const isBeyondClient = ({ ip, jwt, apiKey }: Condition): boolean =>
  ip !== undefined || jwt === true || apiKey === true

export const spoofableList: ListRule = (entry) => {
  const { list, condition, at } = entry
  if (list === 'deny' || isBeyondClient(condition) || isPreflight(condition)) return []
  const found = (where: string, verb: string, condition: Condition): Found => ({
    code: 'spoofable-list',
    path: `${at}${where}.${condition.header ? 'header' : 'query'}`,
    message: `${titleOf(entry)} lets any client that ${verb} ${namesIn(condition)} skip limits.`,
    hint: 'Add a condition on ip, on a verified credential (jwt: true, apiKey: true), or on a header whose value is a secret of at least 16 characters.',
  })
  return [
    ...(isGuessable(condition) ? [found('', 'sends', condition)] : []),
    ...(condition.not ?? []).flatMap((excluded, index) =>
      chosenIn(excluded).length > 0 ? [found(`.not[${index}]`, 'leaves out', excluded)] : [],
    ),
  ]
}
