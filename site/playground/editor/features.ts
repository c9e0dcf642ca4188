/** The features that a configuration in the playground may call. */
import type { Feature } from '../../../src/core/feature.ts'
import { bans } from '../../../src/features/bans/index.ts'
import { concurrency } from '../../../src/features/concurrency/index.ts'
import { distinct } from '../../../src/features/distinct/index.ts'
import { headerSets } from '../../../src/features/header-sets/index.ts'
import { leases } from '../../../src/features/leases/index.ts'
import { live } from '../../../src/features/live/index.ts'
import { observe } from '../../../src/features/observe/index.ts'
import { overrides } from '../../../src/features/overrides/index.ts'
import { plans } from '../../../src/features/plans/index.ts'
import { refusals } from '../../../src/features/refusals/index.ts'
import { shield } from '../../../src/features/shield/index.ts'
import { slidingLog } from '../../../src/features/sliding-log/index.ts'
import { turns } from '../../../src/features/turns/index.ts'

// biome-ignore lint/suspicious/noExplicitAny: each checks its arguments
export const features: Record<string, (...given: any[]) => unknown> = {
  bans,
  concurrency,
  distinct,
  headerSets,
  leases,
  live,
  overrides,
  plans,
  refusals,
  shield,
  slidingLog,
  turns,
  observe,
}

/** The features that a Worker has by default. */
export const byDefault: Feature[] = [
  bans(),
  concurrency(),
  headerSets(),
  leases(),
  live(),
  overrides(),
  plans(),
  refusals(),
  shield(),
  slidingLog(),
]
