/**
 * Whether `now` is from `from` on and before `until`, all ms since the epoch. The lower bound is a guard: a span ends early if the
 * clock was set back to before its start. Otherwise it would last longer by as much.
 */
export const isWithin = (now: number, from: number, until: number): boolean =>
  from <= now && now < until

/** A timer that is later than this, in ms, shows that the isolate is behind, and nothing about the store. */
const MAX_LAG_MS = 50

/** Whether a timer that fired `lateMs` after its time means that the isolate itself is behind. */
export const isLate = (lateMs: number): boolean => lateMs > MAX_LAG_MS
