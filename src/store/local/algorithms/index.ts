import type { LocalAlgorithm } from './algorithm.ts'
import { fixedWindow } from './fixed-window.ts'
import { slidingLog } from './sliding-log.ts'
import { slidingWindow } from './sliding-window.ts'
import { tokenBucket } from './token-bucket.ts'

export type { LocalAlgorithm, LocalOutcome, QuotaTerms, State } from './algorithm.ts'

/** By the names that parsed policies use. */
export const algorithms = {
  'fixed-window': fixedWindow,
  'sliding-window': slidingWindow,
  'sliding-log': slidingLog,
  'token-bucket': tokenBucket,
} satisfies Record<string, LocalAlgorithm>
