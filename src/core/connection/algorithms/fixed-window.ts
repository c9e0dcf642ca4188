import type { QuotaAlgorithm, QuotaTerms } from './algorithm.ts'

/** State: `time` is the start of the window; `numbers` is [units taken in it]. */
export const fixedWindow: QuotaAlgorithm = (now, terms, cost, state) => {
  const { limit, windowMs } = terms
  const current = state && now < (state.end ?? state.time + windowMs) ? state : undefined
  const bounds = current ?? windowAt(now, terms)
  const before = current?.numbers[0] ?? 0
  const endsIn = (bounds.end ?? bounds.time + windowMs) - now

  const fits = cost === 0 || cost <= limit - before
  const count = fits ? before + cost : before
  const remaining = Math.max(0, limit - count)
  return {
    allowed: fits,
    remaining,
    retryAfterMs: fits ? 0 : cost > limit ? null : endsIn,
    resetAfterMs: count > 0 ? endsIn : 0,
    nextAfterMs: remaining < limit ? endsIn : 0,
    ...(count > before && { state: { ...bounds, numbers: [count] } }),
  }
}

/** The window that a first charge at `now` opens. A calendar window has an explicit end. */
function windowAt(now: number, { windowMs, align, period }: QuotaTerms) {
  if (!period) return { time: align === 'clock' ? now - (now % windowMs) : now }
  const [start, end, nextEnd] = period
  if (now < end) return { time: start, end }
  const length = nextEnd - end
  const time = now - ((now - end) % length)
  return { time, end: time + length }
}
