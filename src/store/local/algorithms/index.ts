import type { LocalAlgorithm } from './algorithm.ts'
import { fixedWindow } from './fixed-window.ts'
import { slidingLog } from './sliding-log.ts'
import { slidingWindow } from './sliding-window.ts'
import { tokenBucket } from './token-bucket.ts'

export type { LocalAlgorithm, LocalOutcome, QuotaTerms, State } from './algorithm.ts'

/** The algorithms by their names in parsed policies. */
export const algorithms = {
  'fixed-window': fixedWindow,
  'sliding-window': slidingWindow,
  'sliding-log': slidingLog,
  'token-bucket': tokenBucket,
} satisfies Record<string, LocalAlgorithm>
