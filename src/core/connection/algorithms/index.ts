import type { QuotaAlgorithm } from './algorithm.ts'
import { fixedWindow } from './fixed-window.ts'
import { slidingLog } from './sliding-log.ts'
import { slidingWindow } from './sliding-window.ts'
import { tokenBucket } from './token-bucket.ts'

export type { QuotaAlgorithm, QuotaOutcome, QuotaTerms, State } from './algorithm.ts'
export {
  capacityOf,
  endingIn,
  MAX_ENTRIES,
  MAX_PRODUCT,
  resized,
  withFloor,
} from './algorithm.ts'

/** The algorithms by their names in parsed policies. */
export const algorithms = {
  'fixed-window': fixedWindow,
  'sliding-window': slidingWindow,
  'sliding-log': slidingLog,
  'token-bucket': tokenBucket,
} satisfies Record<string, QuotaAlgorithm>
