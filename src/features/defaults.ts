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

export const defaults = (): Feature[] => [
  { ...declarations.bans, compile: stages.bans },
  { ...declarations.concurrency, compile: stages.concurrency },
  { ...declarations.distinct, compile: stages.distinct },
  { ...declarations.headerSets, compile: () => ({}) },
  { ...declarations.leases, compile: stages.leases },
  { ...declarations.live, compile: stages.live },
  { ...declarations.overrides, compile: stages.overrides },
  { ...declarations.plans, compile: stages.plans },
  { ...declarations.proxies, compile: stages.proxies },
  { ...declarations.refusals, compile: stages.refusals },
  { ...declarations.shield, compile: stages.shield },
  { ...declarations.slidingLog, compile: stages.slidingLog },
  { ...declarations.turns, compile: stages.turns },
  ...coreParts(),
]
