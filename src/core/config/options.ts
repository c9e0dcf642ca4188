/** Types of the options in sluice.config.ts. The schema documents each field; docs/reference/configuration.md has examples. */
export type { MatchOptions } from './schema/condition.ts'
export type { ConfigOptions, ListOptions } from './schema/config.ts'
export type { CorsOptions } from './schema/cors.ts'
export type { ExpectOptions } from './schema/expect.ts'
export type { HeaderSet } from './schema/headers.ts'
export type { Key, KeySource } from './schema/key.ts'
export type { AlgorithmName, PolicyOptions } from './schema/policy.ts'
