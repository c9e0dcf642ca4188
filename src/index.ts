/** The public names of the library. */
export type { Bindings } from './base/bindings.ts'
export type { Decision, LimitState, Reason } from './base/decision.ts'
export { ConfigError, StoreError, type StoreErrorCode } from './base/errors.ts'
export type { Finding, FindingCode } from './config/findings.ts'
export type { ConfigOptions, Key, MatchOptions, PolicyOptions } from './config/options.ts'
export { defineConfig } from './config/parse.ts'
export { createGateway, type GatewayBindings } from './gateway/gateway.ts'
export { rateLimiter } from './gateway/middleware.ts'
