import { expect } from 'vitest'
import { ConfigError } from '../../src/core/base/errors.ts'
import { parseConfig } from '../../src/core/config/parse.ts'
import { defaultFields } from '../../src/features/defaults.ts'
import { leases } from './features.ts'

/** The forms of a key part, as error messages list them. */
export const KEY =
  '"ip", { ip: { v4, v6 } }, "path", "method", "host", "country", "asn", "colo", "ja4", "verifiedBot", "api-key", "global", "path:<parameter>", "header:<name>", "cookie:<name>", "query:<name>", "jwt:<claim>", "body:<path>", { digest: "body:<path>" }, or a function'

export const shield = { binding: 'SHIELD', limit: 100, period: '10s' } as const
export const valid = { name: 'a', limit: 5, window: '10s' } as const

/** The error of a function that parses options, if it fails. */
export function errorOf(parse: () => unknown): ConfigError | undefined {
  try {
    parse()
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError)
    return error as ConfigError
  }
  return undefined
}

/** The problems of a configuration as "path: expected | got". */
export const problems = (config: unknown): string[] =>
  (errorOf(() => parseConfig(config, defaultFields))?.problems ?? []).map(
    ({ path, expected, got }) => `${path}: ${expected} | ${got}`,
  )

/** The problems that a function reports, as "path: expected". */
export const expectedBy = (parse: () => unknown): string[] =>
  (errorOf(parse)?.problems ?? []).map(({ path, expected }) => `${path}: ${expected}`)

/** The message of the error of a configuration; empty if it is valid. */
export const messageOf = (config: unknown): string =>
  errorOf(() => parseConfig(config, defaultFields))?.message ?? ''

/** The problems of a valid policy with `change`. Paths are without `policies[0].`. */
export const problemsOf = (change: object) =>
  problems({ use: [leases()], policies: [{ ...valid, ...change }] }).map((line) =>
    line.replace(/^policies\[0\]\.?/, ''),
  )
