import type { Feature } from '../../core/feature.ts'
import { compileClaim, createClaims } from './claims.ts'
import { type JwtOptions, parseOptions } from './options.ts'

export type { JwtOptions } from './options.ts'

/**
 * Lets policies use the claims of a request's verified token: `jwt:<claim>` in keys and plans, and `{ claim }` in `limit`.
 * @throws {ConfigError} immediately, if the options are invalid
 * @example
 * defineConfig({
 *   policies: [{ name: 'per-user', limit: 60, window: '1m', key: 'jwt:sub' }],
 *   use: [jwt({ secret: 'JWT_SECRET' })],
 * })
 */
export function jwt(options: JwtOptions): Feature {
  const settings = parseOptions(options)
  return {
    name: 'jwt',
    variables: settings.secret === undefined ? [] : [settings.secret],
    compile({ config, log }) {
      // Half of the shortest deadline, so that a wait for the issuer's keys leaves time for the store.
      const { policies } = config
      const deadlines = policies.length > 0 ? policies : [config] // policies may follow in a live document
      const deadlineMs = Math.min(...deadlines.map((one) => one.deadlineMs)) / 2
      return { claims: createClaims(settings, { deadlineMs, log }), compileClaim }
    },
  }
}
