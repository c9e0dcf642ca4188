import type { Algorithm } from './algorithm.ts'
import { fixedWindow } from './fixed-window.ts'
import { gcra } from './gcra.ts'
import { slidingLog } from './sliding-log.ts'
import { slidingWindow } from './sliding-window.ts'
import { tokenBucket } from './token-bucket.ts'

export type { Algorithm, Outcome, QuotaTerms, State } from './algorithm.ts'

/** The five, by the names that policies use. */
export const algorithms = {
  'fixed-window': fixedWindow,
  'sliding-window': slidingWindow,
  'sliding-log': slidingLog,
  'token-bucket': tokenBucket,
  gcra,
} satisfies Record<string, Algorithm>
