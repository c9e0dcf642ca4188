import { expect } from 'vitest'
import { ConfigError } from '../../src/base/errors.ts'
import { parseConfig } from '../../src/config/parse.ts'
import { leases } from '../../src/leases/index.ts'

/** The forms of a key part, as error messages list them. */
export const KEY =
  '"ip", { ip: { v4, v6 } }, "path", "method", "host", "country", "asn", "colo", "ja4", "verifiedBot", "api-key", "global", "path:<parameter>", "header:<name>", "cookie:<name>", "query:<name>", "jwt:<claim>", "body:<path>", or a function'

export const shield = { binding: 'SHIELD', limit: 100, period: '10s' } as const
export const valid = { name: 'a', limit: 5, window: '10s' } as const

/** The problems of a configuration as "path: expected | got". */
export function problems(config: unknown): string[] {
  try {
    parseConfig(config)
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError)
    return (error as ConfigError).problems.map(
      ({ path, expected, got }) => `${path}: ${expected} | ${got}`,
    )
  }
  return []
}

/** The problems of a valid policy with `change`. Paths are without `policies[0].`. */
export const problemsOf = (change: object) =>
  problems({ leases: leases(), policies: [{ ...valid, ...change }] }).map((line) =>
    line.replace(/^policies\[0\]\.?/, ''),
  )
