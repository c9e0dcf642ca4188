/** What the features that `createGateway` has by default add to configurations, without what they do. For the linter and the command line. */
import type { FeatureFields } from '../core/config/feature.ts'
import { declaration as bans } from './bans/declaration.ts'
import { declaration as concurrency } from './concurrency/declaration.ts'
import { declaration as headerSets } from './header-sets/declaration.ts'
import { declaration as leases } from './leases/declaration.ts'
import { declaration as live } from './live/declaration.ts'
import { declaration as overrides } from './overrides/declaration.ts'
import { declaration as plans } from './plans/declaration.ts'
import { declaration as shield } from './shield/declaration.ts'
import { declaration as slidingLog } from './sliding-log/declaration.ts'

export const inGateway: readonly FeatureFields[] = [
  bans,
  concurrency,
  headerSets,
  leases,
  live,
  overrides,
  plans,
  { name: 'refusals' },
  shield,
  slidingLog,
]
