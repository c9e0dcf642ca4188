/** What the rules of the linter look at, and what they return. */
import type { Finding, FindingCode } from '../config/findings.ts'
import type { ConfigOptions, ListOptions } from '../config/options.ts'
import type { Config, ListEntry, Policy } from '../config/parse.ts'
import type { KeyPart } from '../config/schema/key.ts'

/** A configuration as parsed, and as written: only the latter shows which defaults were left out, and where a value stands. */
export interface Facts {
  config: Config
  written: ConfigOptions
}

export type Found = Finding & { code: FindingCode }

/** Looks for one kind of mistake in a policy, which stands at `at`. */
export type PolicyRule = (policy: Policy, at: string, facts: Facts) => Found | Found[]

/** An entry of `allow` or `deny`, with its place. */
export interface Listed extends ListEntry {
  list: 'allow' | 'deny'
  at: string
  written: ListOptions
  /** Of `allow`: the policies whose limits are skipped; `undefined`: all. */
  policies?: string[] | undefined
}

/** Looks for one kind of mistake in an entry of a list. */
export type ListRule = (entry: Listed) => Found | Found[]

/** Looks for one kind of mistake in the rest of the configuration. */
export type ConfigRule = (facts: Facts) => Found | Found[]

export const listed = ({ config, written }: Facts): Listed[] =>
  (['allow', 'deny'] as const).flatMap((list) =>
    config[list].map((entry, index) => ({
      ...entry,
      list,
      at: `${list}[${index}]`,
      written: [written[list]].flat()[index]!,
    })),
  )

/** `allow[0]`, or `allow[0] "office"`. */
export const titleOf = ({ at, name }: Listed) => (name === at ? at : `${at} "${name}"`)

export const writtenOf = (policy: Policy, { config, written }: Facts) =>
  written.policies[config.policies.indexOf(policy)]!

/** The parts of a policy's key, and of the key it falls back to, each with its place. */
export function partsOf({ key, onMissingKey }: Policy, at: string): [KeyPart, string][] {
  const placed = (parts: KeyPart[], where: string) =>
    parts.map((part, index): [KeyPart, string] => [part, `${where}[${index}]`])
  return [
    ...placed(key, `${at}.key`),
    ...(typeof onMissingKey === 'object' ? placed(onMissingKey.key, `${at}.onMissingKey.key`) : []),
  ]
}
