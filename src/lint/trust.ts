/** Finds policies that a client can evade, and entries of `allow` and `deny` that take too many requests or too few. */
import { networkRange } from '../core/base/ip.ts'
import type { Config, Policy } from '../core/config/parse.ts'
import type { Condition } from '../core/config/schema/condition.ts'
import type { KeyPart } from '../core/config/schema/key.ts'
import { labelOf } from '../core/program/key.ts'
import { alwaysBeside, covers } from './covers.ts'
import { type Found, type ListRule, type PolicyRule, partsOf, titleOf } from './facts.ts'

/** Finds an entry without a condition, with a condition that every request matches, or with a network of all addresses. */
export const takesAll: ListRule = (entry) => {
  const { condition, list, policies, at } = entry
  const network = condition.ip?.find((text) => text.endsWith('/0'))
  if (policies || !covers({ ...condition, ip: network ? undefined : condition.ip }, {})) return []
  const requests = network ? `every request from ${network}` : 'every request'
  return {
    path: at,
    message: `${titleOf(entry)} matches everything: ${requests} ${list === 'deny' ? 'is refused' : 'skips every limit'}.`,
    hint: 'Add a condition that selects the requests.',
  }
}

const MIN_SECRET = 16 // characters, like the tokens of the decision API

/** The headers and query parameters of a condition. A client chooses them. */
const chosenIn = ({ header = [], query = [] }: Condition) => [...header, ...query]

const namesIn = (condition: Condition): string =>
  Array.from(chosenIn(condition), ({ name }) => name).join(', ')

/** A preflight has no effect on the origin (CORS protocol of the Fetch standard). */
const isPreflight = ({ method }: Condition): boolean =>
  method?.every((one) => one === 'OPTIONS') ?? false

const isSecret = ({ values }: ReturnType<typeof chosenIn>[number]) =>
  values?.every((text) => text.length >= MIN_SECRET && !/^\*|\*$/.test(text)) ?? false

/** True if a client cannot know a header or a parameter that a condition requires. */
export const holdsSecret = (condition: Condition): boolean => chosenIn(condition).some(isSecret)

const isGuessable = (condition: Condition): boolean =>
  chosenIn(condition).length > 0 && !holdsSecret(condition)

/** Reports whether a condition requires what a client can neither choose nor invent. */
const isBeyondClient = ({ ip, jwt, apiKey }: Condition): boolean =>
  ip !== undefined || jwt === true || apiKey === true

export const spoofableList: ListRule = (entry) => {
  const { list, condition, at } = entry
  if (list === 'deny' || isBeyondClient(condition) || isPreflight(condition)) return []
  const found = (where: string, verb: string, condition: Condition): Found => ({
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

/** Prefix length of a client's IPv6 network. The client can choose the other 64 bits of its address. */
const CLIENT_BITS = 64

export const ipv6ByAddress: PolicyRule = (policy, at) =>
  partsOf(policy, at).flatMap(([part, path]) => {
    if (part.source !== 'ip' || part.v6 <= CLIENT_BITS) return []
    return {
      path: `${path}.ip.v6`,
      message: `"${policy.name}" counts IPv6 by /${part.v6}, and one client can use any number of these networks.`,
      hint: 'Set v6 to 64 or less.',
    }
  })

export const ipv6Denied: ListRule = (entry) => {
  const { list, condition, at } = entry
  const long = (condition.ip ?? []).filter(
    (text) =>
      networkRange(text)![0].length === 16 && Number(text.split('/')[1] ?? 128) > CLIENT_BITS,
  )
  if (list === 'allow' || long.length === 0) return []
  const more = long.length > 1 ? ` and ${long.length - 1} more` : ''
  return {
    path: `${at}.ip[${condition.ip!.indexOf(long[0]!)}]`,
    message: `${titleOf(entry)} refuses ${long[0]}${more}, and a client can use other addresses in the same /64.`,
    hint: 'Refuse the whole /64.',
  }
}

const isChosenByClient = ({ source }: KeyPart, { apiKeys }: Config) =>
  ['header', 'cookie', 'query', 'body'].includes(source) || (source === 'api-key' && !apiKeys.known)

/** Reports whether a client cannot get another quota of a policy by a change of its request. */
const isUnavoidable = ({ key }: Policy, config: Config) =>
  !key.some(
    (part) =>
      isChosenByClient(part, config) ||
      ['path', 'path-parameter', 'host', 'ja4', 'function'].includes(part.source),
  )

/** Finds keys that the client chooses. Not reported beside a policy that clients cannot evade: the key then only separates honest clients. */
export const spoofableKey: PolicyRule = (policy, at, { config }) => {
  if (alwaysBeside(policy, config).some((other) => isUnavoidable(other, config))) return []
  const { body = [] } = policy.match
  const isListed = (part: KeyPart) =>
    part.source === 'body' &&
    body.some(
      ({ name, values }) => name === part.name && values?.every((text) => !text.includes('*')),
    )
  return partsOf(policy, at)
    .filter(([part]) => isChosenByClient(part, config) && !isListed(part))
    .map(([part, path]) => ({
      path,
      message: `"${policy.name}" counts by ${labelOf(part)}, which the client chooses: each new value gets a new quota.`,
      hint:
        part.source === 'api-key'
          ? 'List the valid keys (apiKeys.known), or add a policy by ip for the same requests.'
          : 'Add a policy by ip for the same requests, or count by a claim (jwt:…) or a known api-key. Accept the finding if a proxy in front of the Worker sets the value.',
    }))
}

export const spoofableMatch: PolicyRule = ({ name, match, cost }, at) => {
  const isInvented = (condition: Condition) =>
    isGuessable(condition) && !isBeyondClient(condition) && !isPreflight(condition)
  const found = (condition: Condition, path: string, effect: string): Found => ({
    path: `${path}.${condition.header ? 'header' : 'query'}`,
    message: `"${name}" ${effect} a request with ${namesIn(condition)}, which any client can send.`,
    hint: 'To tell clients apart by a credential, write jwt: false (with jwt()) or apiKey: false (with apiKeys.known) in match: only a verified one counts. An app that verifies sessions counts by a key function.',
  })
  return [
    ...(match.not ?? []).flatMap((excluded, index) =>
      isInvented(excluded) ? [found(excluded, `${at}.match.not[${index}]`, 'does not limit')] : [],
    ),
    ...cost.rules.flatMap(({ condition, cost: units }, index) =>
      units === 0 && isInvented(condition)
        ? [found(condition, `${at}.cost[${index}]`, 'charges nothing for')]
        : [],
    ),
  ]
}

const LOGIN =
  /^(log(in|on)|sign(in|on)|o?auth2?|authenticat(e|ion)|sso|passwords?|passwd|passcode|forgot|reset|recovery?|t?otp|2fa|mfa|tokens?|sessions?)$/

/** Splits a path into words without parameters: `/auth/resetPassword/:token` has auth, reset and password. */
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

export const loginFailsOpen: PolicyRule = (policy, at, { config }) => {
  const { name, match, mode, onStoreError } = policy
  const loginPath = match.path?.find(namesLogin)
  const readsOnly = match.method?.every((method) => ['GET', 'HEAD', 'OPTIONS'].includes(method))
  if (!loginPath || readsOnly || mode !== 'enforce' || onStoreError !== 'allow') return []
  if (alwaysBeside(policy, config).some((other) => other.onStoreError === 'deny')) return []
  return {
    path: `${at}.onStoreError`,
    message: `"${name}" protects ${loginPath}, and allows every attempt while Redis is unavailable.`,
    hint: "Set onStoreError to 'deny' (503), or to 'local' (each isolate counts by itself).",
  }
}
