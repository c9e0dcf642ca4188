/** `sluice/features`: the features with parameters. The others are on in every host (defaults.ts). */

export type { RefusalOptions } from '../core/config/schema/refusal-fields.ts'
export type { PenaltyOptions } from './bans/fields.ts'
export * from './bodies/index.ts'
export * from './cluster/index.ts'
export * from './endpoints/index.ts'
export * from './jitter/index.ts'
export * from './jwt/index.ts'
export * from './observe/index.ts'
export * from './quota/index.ts'
export * from './turns/index.ts'
export * from './verify/index.ts'
