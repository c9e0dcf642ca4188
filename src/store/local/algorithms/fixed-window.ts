import type { LocalAlgorithm, QuotaTerms } from './algorithm.ts'

/** State: start of the window; [units taken in it]. */
export const fixedWindow: LocalAlgorithm = (now, terms, cost, state) => {
  const { limit, window } = terms
  const open = state && now < (state.end ?? state.time + window) ? state : undefined
  const around = open ?? windowAround(now, terms)
  const before = open?.numbers[0] ?? 0
  const endsIn = (around.end ?? around.time + window) - now

  const fits = cost === 0 || before + cost <= limit
  const count = fits ? before + cost : before
  const resetAfterMs = count > 0 ? endsIn : 0
  return {
    allowed: fits,
    remaining: Math.max(0, limit - count),
    retryAfterMs: fits ? 0 : cost > limit ? null : endsIn,
    resetAfterMs,
    nextAfterMs: resetAfterMs,
    ...(count > before && { state: { ...around, numbers: [count] } }),
  }
}

/** The window that opens at `now`, with its end if the calendar says it. */
function windowAround(now: number, { window, align, period }: QuotaTerms) {
  if (!period) return { time: align === 'clock' ? now - (now % window) : now }
  const [start, end, nextEnd] = period
  if (now < end) return { time: start, end }
  const length = nextEnd - end
  const time = now - ((now - end) % length)
  return { time, end: time + length }
}
