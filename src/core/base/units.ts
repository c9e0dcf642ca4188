/** The most units of a request, and of a limit that is not a fixed window. */
export const MAX_UNITS = 2 ** 51

/** Upper bound of units times window in ms, where an algorithm multiplies them. Sums of three such products are exact in a double. */
export const MAX_PRODUCT = Math.floor(2 ** 53 / 3)

/** The most units of a sliding log, slots of a limit, and different values: Redis stores 40 to 150 bytes for each. */
export const MAX_ENTRIES = 10_000

/** The largest limit or burst that an algorithm counts exactly. A fixed window only adds and compares. */
export function largestQuota(algorithm: string, windowMs: number): number {
  if (algorithm === 'fixed-window') return Number.MAX_SAFE_INTEGER
  return hasOwnKey(algorithm)
    ? MAX_ENTRIES
    : Math.min(MAX_UNITS, Math.floor(MAX_PRODUCT / windowMs))
}

interface Quota {
  limit: number
  burst: number
}

/** The largest cost that a full quota admits. */
export const capacityOf = (algorithm: string, { limit, burst }: Quota): number =>
  algorithm === 'token-bucket' ? burst : limit

/** The units of a share of the quota, rounded up; of the burst for a token bucket. */
export function floorUnits(quota: Quota & { algorithm: string }, share: number): number {
  const units = share * capacityOf(quota.algorithm, quota)
  // 0.55 * 100 is 55.00000000000001. Larger products have no such digits, and Lua rounds them otherwise.
  return Math.ceil(units < 1e14 ? Number(units.toPrecision(15)) : units)
}

/** True if an algorithm keeps the state of a limit under a key of its own, and not in the record of the subject. */
export const hasOwnKey = (
  algorithm: string | undefined,
): algorithm is 'sliding-log' | 'concurrency' | 'distinct' =>
  algorithm === 'sliding-log' || algorithm === 'concurrency' || algorithm === 'distinct'

/** The keys in Redis that one call of the script takes. */
export const MAX_KEYS = 128

interface Keyed {
  algorithm?: string | undefined
  penalty?: unknown
  overrides?: unknown
}

/** The keys in Redis that a quota needs. A log and slots have a key of their own; a ban and the limit of an operator are in the record of the client. */
export const keysOf = ({ algorithm, penalty, overrides }: Keyed): number =>
  hasOwnKey(algorithm) && (penalty || overrides) ? 2 : 1

export const keysOfAll = (policies: readonly (Keyed | undefined)[]): number =>
  policies.reduce((sum, policy) => sum + keysOf(policy ?? {}), 0)
