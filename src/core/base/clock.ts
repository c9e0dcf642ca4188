/** The clock of the isolate, ms since the epoch. It reads `Date.now` on each call, because `sluice/testing` replaces it. */
export const systemClock = (): number => Date.now()

/** True from `from` until before `until`, ms since the epoch. With a clock that is set back to before the start, the span ends early. */
export const isWithin = (now: number, from: number, until: number): boolean =>
  from <= now && now < until

/** A timer that fires later than this, in ms, shows that the isolate is overloaded. It says nothing about the store. */
const MAX_LAG_MS = 50

export const isLate = (lateMs: number): boolean => lateMs > MAX_LAG_MS
