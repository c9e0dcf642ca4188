/** The options in sluice.config.ts. The schema documents each field; docs/reference/configuration.md has examples. */
import type { ConfigOptions } from './schema/config.ts'

/** The options of a limiter in an app, which has no origin of its own. */
export type AppOptions<Context> = Omit<ConfigOptions<Context>, 'origin'>

export type { MatchOptions } from './schema/condition.ts'
export type {
  ConfigOptions,
  CorsOptions,
  ExpectOptions,
  HeaderSet,
  ListOptions,
} from './schema/config.ts'
export type { Key, KeySource } from './schema/key.ts'
export type { AlgorithmName, PolicyOptions } from './schema/policy.ts'

/**
 * Returns a configuration, with types. `npx sluice check` and each limiter check it. A limiter freezes it: copy it to change it.
 * @example
 * export default defineConfig({
 *   origin: 'https://origin.example.com',
 *   policies: [{ name: 'per-ip', limit: 100, window: '1m' }],
 * })
 */
export const defineConfig = <Context = unknown>(
  options: ConfigOptions<Context>,
): ConfigOptions<Context> => options
