/**
 * Whether `now` is from `from` on and before `until`, all ms since the epoch. The lower bound is a guard: a span ends early if the
 * clock was set back to before its start. Otherwise it would last longer by as much.
 */
export const isWithin = (now: number, from: number, until: number): boolean =>
  from <= now && now < until
