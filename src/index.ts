/** The public names of the library. */
export type { Decision, LimitState, Reason } from './decision.ts'
export { ConfigError, StoreError, type StoreErrorCode } from './errors.ts'
export { createGateway, type GatewayBindings } from './gateway.ts'
export { type Bindings, rateLimiter } from './middleware.ts'
export { type ConfigOptions, defineConfig, type PolicyOptions } from './policy.ts'
