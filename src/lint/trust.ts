/** What a client may choose, and what that gives it. */
import { networkRange } from '../base/ip.ts'
import type { Config, Policy } from '../config/parse.ts'
import type { KeyPart } from '../config/schema/key.ts'
import { labelOf } from '../match/key.ts'
import {
  alwaysMet,
  asksGuessable,
  type Found,
  headerNames,
  type ListRule,
  type PolicyRule,
  partsOf,
  titleOf,
} from './facts.ts'

/** Of IPv6, the least that one client has is 64 bits of addresses to choose from. */
const CLIENT_BITS = 64

export const ipv6ByAddress: PolicyRule = (policy, at) =>
  partsOf(policy, at).flatMap(([part, path]) =>
    part.source === 'ip' && part.v6 > CLIENT_BITS
      ? [
          {
            code: 'ipv6-by-address',
            path: `${path}.ip.v6`,
            message: `"${policy.name}" counts IPv6 by /${part.v6}, of which one client has as many as it likes.`,
            hint: 'Leave v6 at 64, or less.',
          },
        ]
      : [],
  )

/** The same of a list that refuses. Found once for each entry. */
export const ipv6Denied: ListRule = (entry) => {
  const { list, condition, at } = entry
  const long = (condition.ip ?? []).filter(
    (text) =>
      networkRange(text)![0].length === 16 && Number(text.split('/')[1] ?? 128) > CLIENT_BITS,
  )
  if (list === 'allow' || long.length === 0) return []
  const more = long.length > 1 ? ` and ${long.length - 1} more` : ''
  return [
    {
      code: 'ipv6-by-address',
      path: `${at}.ip[${condition.ip!.indexOf(long[0]!)}]`,
      message: `${titleOf(entry)} refuses ${long[0]}${more}, and the client has other addresses in the same /64.`,
      hint: 'Refuse the whole /64.',
    },
  ]
}

/** Whether a client has but to send another value. */
const isClientsWord = ({ source }: KeyPart, { apiKeys }: Config) =>
  ['header', 'cookie', 'query'].includes(source) || (source === 'api-key' && !apiKeys.known)

/** Whether a policy holds a client whatever it makes up. */
const holds = ({ key }: Policy, config: Config) =>
  !key.some(
    (part) =>
      isClientsWord(part, config) ||
      ['path', 'path-parameter', 'host', 'function'].includes(part.source),
  )

/** Not where another policy holds those who lie: what is left then is fairness among those who do not. */
export const spoofableKey: PolicyRule = (policy, at, facts) => {
  const { config } = facts
  if (alwaysMet(policy.match, policy, facts).some((other) => holds(other, config))) return []
  return partsOf(policy, at)
    .filter(([part]) => isClientsWord(part, config))
    .map(
      ([part, path]): Found => ({
        code: 'spoofable-key',
        path,
        message: `"${policy.name}" counts by ${labelOf(part)}, which is whatever a client says: each value that it makes up is a new quota.`,
        hint:
          part.source === 'api-key'
            ? 'List the keys there are (apiKeys.known), or add a policy by ip that meets the same requests.'
            : 'Add a policy by ip that meets the same requests, or count by a claim (jwt:…) or a known api-key; accept it where something before the Worker sets the value.',
      }),
    )
}

export const spoofableList: ListRule = (entry) => {
  const { list, condition, at } = entry
  // A preflight does nothing (the Fetch standard's CORS protocol).
  const preflights = condition.method?.every((method) => method === 'OPTIONS')
  if (list === 'deny' || preflights) return []
  const hint = 'Add ip, or a header whose value is a secret of at least 16 characters.'
  const found = (path: string, what: string): Found => ({
    code: 'spoofable-list',
    path,
    message: `${titleOf(entry)} lets whoever ${what} skip limits.`,
    hint,
  })
  const sent = asksGuessable(condition)
    ? [found(`${at}.header`, `sends ${headerNames(condition)}`)]
    : []
  const left = (condition.not ?? []).flatMap(({ header }, index) =>
    header && !condition.ip
      ? [found(`${at}.not[${index}].header`, `leaves out ${headerNames({ header })}`)]
      : [],
  )
  return [...sent, ...left]
}

/** What a client may leave out of a request. */
const isOptional = ({ source }: KeyPart) =>
  ['header', 'cookie', 'query', 'jwt', 'api-key'].includes(source)

/** A policy which a client may choose not to be met by, where no other meets it then. */
export const dodgeable: PolicyRule = (policy, at, facts) => {
  const { match, name } = policy
  if (policy.mode === 'shadow') return []
  const guessable = (match.not ?? []).filter(asksGuessable)
  const dodging = {
    ...match,
    header: undefined,
    not: match.not?.filter((taken) => !guessable.includes(taken)),
  }
  const isMet = (condition: Policy['match']) =>
    alwaysMet(condition, policy, facts).some(
      ({ onMissingKey, key }) => onMissingKey !== 'skip' || !key.some(isOptional),
    )
  if (isMet(dodging)) return []

  const found = (path: string, does: string): Found => ({
    code: 'dodgeable-policy',
    path: `${at}.${path}`,
    message: `"${name}" does not meet a client that ${does}, and no other policy is sure to.`,
    hint: 'Add a policy that meets these requests whatever they say of themselves, such as one by ip.',
  })
  const optional = policy.onMissingKey === 'skip' ? policy.key.filter(isOptional) : []
  return [
    ...(match.header
      ? [found('match.header', `sends another ${headerNames(match)}, or none`)]
      : []),
    ...guessable
      .filter((taken) => !isMet({ ...taken, header: undefined }))
      .map((taken) =>
        found(`match.not[${match.not!.indexOf(taken)}].header`, `sends ${headerNames(taken)}`),
      ),
    ...(optional.length > 0
      ? [found('onMissingKey', `leaves out ${optional.map(labelOf).join(' or ')}`)]
      : []),
  ]
}

const LOGIN =
  /^(log(in|on)|sign(in|on)|o?auth2?|authenticat(e|ion)|sso|passwords?|passwd|passcode|forgot|reset|recovery?|t?otp|2fa|mfa|tokens?|sessions?)$/

/** The words of a path: those of `/auth/resetPassword/:token` are auth, reset and password. */
const wordsOf = (path: string) =>
  path
    .split('/')
    .filter((segment) => !segment.startsWith(':'))
    .flatMap((segment) => segment.replace(/([a-z])([A-Z])/g, '$1-$2').split(/[^A-Za-z0-9]+/))
    .map((word) => word.toLowerCase())

const namesLogin = (path: string) => {
  const words = wordsOf(path)
  return words.some(
    (word, index) => LOGIN.test(word) || LOGIN.test(`${words[index - 1] ?? ''}${word}`),
  )
}

/** A guard of passwords that is gone whenever Redis is. */
export const loginFailsOpen: PolicyRule = (policy, at, facts) => {
  const { name, match, mode, onStoreError } = policy
  const guarded = match.path?.find(namesLogin)
  const readsOnly = match.method?.every((method) => ['GET', 'HEAD', 'OPTIONS'].includes(method))
  if (!guarded || readsOnly || mode !== 'enforce' || onStoreError !== 'allow') return []
  if (alwaysMet(match, policy, facts).some((other) => other.onStoreError === 'deny')) return []
  return [
    {
      code: 'login-fails-open',
      path: `${at}.onStoreError`,
      message: `"${name}" guards ${guarded}, and lets every attempt pass while Redis is away.`,
      hint: "Set onStoreError to 'deny' (503), or to 'local' (each isolate counts by itself).",
    },
  ]
}
