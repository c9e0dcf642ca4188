import type { Finding, FindingCode } from '../config/findings.ts'
import type { ConfigOptions, PolicyOptions } from '../config/options.ts'
import type { Config, ListEntry, Policy } from '../config/parse.ts'
import type { Condition } from '../config/schema/condition.ts'
import type { KeyPart } from '../config/schema/key.ts'
import { labelOf } from '../match/key.ts'
import { apart, covers } from './conditions.ts'

/** What rules look at: a configuration as parsed, and as written, to know what was left out. */
export interface Facts {
  config: Config
  written: ConfigOptions
}

export type Found = Finding & { code: FindingCode }

/** Finds what is wrong with one policy, which stands at `at`. */
export type PolicyRule = (policy: Policy, at: string, facts: Facts) => Found[]

/** An entry of a list, and where it stands. */
export interface Listed extends ListEntry {
  list: 'allow' | 'deny'
  at: string
  /** Of `allow`: whose limits are skipped; `undefined`: all. */
  policies?: string[] | undefined
}

/** Finds what is wrong with one entry of a list. */
export type ListRule = (entry: Listed, facts: Facts) => Found[]

/** Finds what is wrong with the rest. */
export type ConfigRule = (facts: Facts) => Found[]

export const listed = ({ config }: Pick<Facts, 'config'>): Listed[] =>
  (['allow', 'deny'] as const).flatMap((list) =>
    config[list].map((entry, index) => ({ ...entry, list, at: `${list}[${index}]` })),
  )

/** `allow[0]`, or `allow[0] "office"`. */
export const titleOf = ({ at, name }: Listed) => (name === at ? at : `${at} "${name}"`)

/** A window or another duration as it was written; a bare number is milliseconds. */
export function spanText(duration: PolicyOptions['window']): string {
  if (duration === 'day' || duration === 'week' || duration === 'month') return `a ${duration}`
  return typeof duration === 'number' ? `${duration} ms` : duration
}

export const writtenOf = (policy: Policy, { config, written }: Facts) =>
  written.policies[config.policies.indexOf(policy)]!

/** What a policy counts by, in words. */
export const keyText = ({ key }: Policy) => key.map(labelOf).join(' + ')

/** The parts of a policy's key and of the other key where it is missing, and where they stand. */
export function partsOf({ key, onMissingKey }: Policy, at: string): [KeyPart, string][] {
  const placed = (parts: KeyPart[], where: string) =>
    parts.map((part, index): [KeyPart, string] => [part, `${where}[${index}]`])
  return [
    ...placed(key, `${at}.key`),
    ...(typeof onMissingKey === 'object' ? placed(onMissingKey.key, `${at}.onMissingKey.key`) : []),
  ]
}

/** Whether every request that a policy meets has all of its key. Not of `ip`: outside Cloudflare a request may come without. */
export const keyIsThere = ({ key, match }: Policy): boolean =>
  key.every((part) =>
    part.source === 'path-parameter'
      ? match.path!.every((pattern) => pattern.split('/').includes(`:${part.name}`))
      : ['path', 'method', 'host', 'global'].includes(part.source),
  )

/** Whether a request is the same subject to two policies, also where it lacks their key. */
export const sameKey = (one: Policy, other: Policy): boolean =>
  identity([one.key, one.onMissingKey]) === identity([other.key, other.onMissingKey]) &&
  // Of a path that has several readings, and of a pattern's parameters, a policy takes those that it matches.
  (!partsOf(one, '').some(([{ source }]) => source.startsWith('path')) ||
    identity(one.match) === identity(other.match))

const functions = new WeakMap<object, number>()
let functionCount = 0

/** A text that is equal for what is equal, functions by which they are. */
export const identity = (value: unknown): string =>
  String(
    JSON.stringify(value, (_, inner) => {
      if (typeof inner !== 'function') return inner
      if (!functions.has(inner)) functions.set(inner, ++functionCount)
      return `function ${functions.get(inner)}`
    }),
  )

/**
 * Whether a policy is enforced on every request that meets a condition.
 * @param besides the policy whose condition it is, or that such requests dodge
 */
export const isAlwaysMet = (
  policy: Policy,
  condition: Condition,
  besides: Policy,
  { config }: Facts,
): boolean =>
  policy !== besides &&
  policy.mode === 'enforce' &&
  (policy.onMissingKey !== 'skip' || keyIsThere(policy) || sameKey(policy, besides)) &&
  covers(policy.match, condition, config) &&
  config.allow.every(
    (entry) =>
      !entry.policies?.includes(policy.name) ||
      entry.policies.includes(besides.name) ||
      apart(entry.condition, condition, config),
  )

export const alwaysMet = (condition: Condition, besides: Policy, facts: Facts): Policy[] =>
  facts.config.policies.filter((policy) => isAlwaysMet(policy, condition, besides, facts))

const MIN_SECRET = 16 // characters, as of the decision API's tokens

/** Whether a condition asks for headers, and anybody anywhere could guess what to send. */
export const asksGuessable = ({ header, ip }: Condition): boolean =>
  header !== undefined &&
  !ip &&
  // All have to be there: one that holds a secret will do.
  header.every(
    ({ values }) =>
      !values || values.some((text) => text.length < MIN_SECRET || /^\*|\*$/.test(text)),
  )

export const headerNames = (...conditions: Condition[]): string =>
  conditions.flatMap(({ header = [] }) => header.map(({ name }) => name)).join(', ')
