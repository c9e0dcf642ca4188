import type { Algorithm } from './algorithm.ts'

/** State: start of the window; [units taken in it]. */
export const fixedWindow: Algorithm = (now, { limit, window, align }, cost, state) => {
  const open = state && now < state.time + window ? state : undefined
  const start = open?.time ?? (align === 'clock' ? now - (now % window) : now)
  const before = open?.numbers[0] ?? 0
  const endsIn = start + window - now

  const fits = cost === 0 || before + cost <= limit
  const count = fits ? before + cost : before
  const resetAfterMs = count > 0 ? endsIn : 0
  return {
    allowed: fits,
    remaining: Math.max(0, limit - count),
    retryAfterMs: fits ? 0 : cost > limit ? null : endsIn,
    resetAfterMs,
    nextAfterMs: resetAfterMs,
    ...(count > before && { state: { time: start, numbers: [count] } }),
  }
}
