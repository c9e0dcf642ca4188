/** `sluice/jwt`: policies by the claims of JSON Web Tokens. */
import type { Jwt } from '../../core/base/claims.ts'
import { createClaims } from './claims.ts'
import { type JwtOptions, parseOptions } from './options.ts'

export type { Jwt } from '../../core/base/claims.ts'
export type { JwtOptions } from './options.ts'

/**
 * Makes the field `jwt` of a configuration, so that policies can use the claims of a request's verified token: `jwt:<claim>` in keys and
 * plans, and `{ claim }` in `limit`.
 * @throws {ConfigError} immediately, if the options are invalid
 * @example
 * defineConfig({
 *   policies: [{ name: 'per-user', limit: 60, window: '1m', key: 'jwt:sub' }],
 *   jwt: jwt({ secret: 'JWT_SECRET' }),
 * })
 */
export function jwt(options: JwtOptions): Jwt {
  const settings = parseOptions(options)
  return {
    secret: settings.secret,
    createClaims: (parts) => createClaims(settings, parts),
  }
}
