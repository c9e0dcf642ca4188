/** The features that each host has by default: all that need neither parameters nor a secret. */
import type { FeatureFields } from '../core/config/feature.ts'
import type { Feature } from '../core/feature.ts'
import * as stages from './compile.ts'
import { coreParts } from './core-parts.ts'
import * as declarations from './declarations.ts'

/** What they add to configurations, without what they do. For the linter and the command line. */
export const defaultFields: readonly FeatureFields[] = [
  declarations.bans,
  declarations.concurrency,
  declarations.distinct,
  declarations.headerSets,
  declarations.leases,
  declarations.live,
  declarations.overrides,
  declarations.plans,
  declarations.proxies,
  declarations.refusals,
  declarations.shield,
  declarations.slidingLog,
  declarations.turns,
]

const compiles: Record<string, Feature['compile']> = stages

export const defaults = (): Feature[] => [
  ...defaultFields.map((one) => ({ ...one, compile: compiles[one.name] ?? (() => ({})) })),
  ...coreParts(),
]
