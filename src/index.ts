/** The public names of the library. */
export type { Bindings } from './core/base/bindings.ts'
export type { Decision, LimitState, Reason } from './core/base/decision.ts'
export { ConfigError, StoreError, type StoreErrorCode } from './core/base/errors.ts'
export type { Finding, FindingCode } from './core/config/findings.ts'
export type {
  ConfigOptions,
  ExpectOptions,
  Key,
  MatchOptions,
  PolicyOptions,
} from './core/config/options.ts'
export { defineConfig } from './core/config/options.ts'
export { rateLimiter } from './hosts/app/middleware.ts'
export {
  type CheckResult,
  type CheckRuntime,
  createSluice,
  type Sluice,
} from './hosts/app/sluice.ts'
export type { GatewayOptions } from './hosts/worker/answering.ts'
export { createGateway, type GatewayBindings } from './hosts/worker/gateway.ts'
