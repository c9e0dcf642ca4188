/** The features that each host has by default: all that need neither parameters nor a secret. */
import type { FeatureFields } from '../core/config/feature.ts'
import type { Feature } from '../core/feature.ts'
import { declaration as bansFields } from './bans/declaration.ts'
import { bans } from './bans/index.ts'
import { declaration as concurrencyFields } from './concurrency/declaration.ts'
import { concurrency } from './concurrency/index.ts'
import { declaration as distinctFields } from './distinct/declaration.ts'
import { distinct } from './distinct/index.ts'
import { declaration as headerSetsFields } from './header-sets/declaration.ts'
import { headerSets } from './header-sets/index.ts'
import { declaration as leasesFields } from './leases/declaration.ts'
import { leases } from './leases/index.ts'
import { declaration as liveFields } from './live/declaration.ts'
import { live } from './live/index.ts'
import { declaration as overridesFields } from './overrides/declaration.ts'
import { overrides } from './overrides/index.ts'
import { declaration as plansFields } from './plans/declaration.ts'
import { plans } from './plans/index.ts'
import { declaration as proxiesFields } from './proxies/declaration.ts'
import { proxies } from './proxies/index.ts'
import { declaration as refusalsFields } from './refusals/declaration.ts'
import { refusals } from './refusals/index.ts'
import { declaration as shieldFields } from './shield/declaration.ts'
import { shield } from './shield/index.ts'
import { declaration as slidingLogFields } from './sliding-log/declaration.ts'
import { slidingLog } from './sliding-log/index.ts'
import { declaration as turnsFields } from './turns/declaration.ts'
import { turns } from './turns/index.ts'

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
  bans(),
  concurrency(),
  distinct(),
  headerSets(),
  leases(),
  live(),
  overrides(),
  plans(),
  proxies(),
  refusals(),
  shield(),
  slidingLog(),
  turns(),
]
