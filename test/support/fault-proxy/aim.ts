/** Selects the requests that a fault applies to. Defaults to all requests. */
export interface Aim {
  /** Share of the requests that the fault applies to, evenly spread: 0.25 is every fourth. Defaults to 1. */
  share?: number
  /** Number of requests that the fault applies to before it ends. Defaults to no limit. */
  next?: number
}

/** @returns a function to call once for each request; it returns true if the fault applies */
export function takeAim({ share = 1, next = Number.POSITIVE_INFINITY }: Aim): () => boolean {
  let remaining = next
  let accumulated = 0
  return () => {
    if (remaining <= 0) return false
    accumulated += share
    if (accumulated < 1 - 1e-9) return false // 1e-9 absorbs rounding: ten additions of 0.1 give less than 1
    accumulated -= 1
    remaining -= 1
    return true
  }
}
