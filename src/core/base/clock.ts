/**
 * The clock of the isolate, ms since the epoch. It reads `Date.now` on each call, because `sluice/testing` replaces it. So a default
 * parameter must be this function, not `Date.now` itself.
 */
export const systemClock = (): number => Date.now()

/**
 * Reports whether `now` is at or after `from` and before `until`; all are ms since the epoch. The lower bound handles a clock that is
 * set back to before the start: the span ends early instead of lasting longer.
 */
export const isWithin = (now: number, from: number, until: number): boolean =>
  from <= now && now < until

/** A timer that fires later than this, in ms, shows that the isolate is overloaded. It says nothing about the store. */
const MAX_LAG_MS = 50

/** Reports whether a timer that fired `lateMs` after its due time shows that the isolate is overloaded. */
export const isLate = (lateMs: number): boolean => lateMs > MAX_LAG_MS
