/** The features that each host has by default: all that need neither parameters nor a secret. */
import type { FeatureFields } from '../core/config/feature.ts'
import type { Feature } from '../core/feature.ts'
import { declaration as bansFields } from './bans/declaration.ts'
import {
  bans,
  concurrency,
  distinct,
  leases,
  live,
  overrides,
  plans,
  proxies,
  refusals,
  shield,
  slidingLog,
  turns,
} from './compile.ts'
import { declaration as concurrencyFields } from './concurrency/declaration.ts'
import { declaration as distinctFields } from './distinct/declaration.ts'
import { declaration as headerSetsFields } from './header-sets/declaration.ts'
import { declaration as leasesFields } from './leases/declaration.ts'
import { declaration as liveFields } from './live/declaration.ts'
import { declaration as overridesFields } from './overrides/declaration.ts'
import { declaration as plansFields } from './plans/declaration.ts'
import { declaration as proxiesFields } from './proxies/declaration.ts'
import { declaration as refusalsFields } from './refusals/declaration.ts'
import { declaration as shieldFields } from './shield/declaration.ts'
import { declaration as slidingLogFields } from './sliding-log/declaration.ts'
import { declaration as turnsFields } from './turns/declaration.ts'

/** What they add to configurations, without what they do. For the linter and the command line. */
export const defaultFields: readonly FeatureFields[] = [
  bansFields,
  concurrencyFields,
  distinctFields,
  headerSetsFields,
  leasesFields,
  liveFields,
  overridesFields,
  plansFields,
  proxiesFields,
  refusalsFields,
  shieldFields,
  slidingLogFields,
  turnsFields,
]

export const defaults = (): Feature[] => [
  { ...bansFields, compile: bans },
  { ...concurrencyFields, compile: concurrency },
  { ...distinctFields, compile: distinct },
  { ...headerSetsFields, compile: () => ({}) },
  { ...leasesFields, compile: leases },
  { ...liveFields, compile: live },
  { ...overridesFields, compile: overrides },
  { ...plansFields, compile: plans },
  { ...proxiesFields, compile: proxies },
  { ...refusalsFields, compile: refusals },
  { ...shieldFields, compile: shield },
  { ...slidingLogFields, compile: slidingLog },
  { ...turnsFields, compile: turns },
]
