/** A timer that is later than this, in ms, shows that the isolate is behind, and nothing about the store. */
const MAX_LAG_MS = 50

/** Whether a timer that fired `lateMs` after its time means that the isolate itself is behind. */
export const isLate = (lateMs: number): boolean => lateMs > MAX_LAG_MS
