/** The requests that a fault applies to: by default all. */
export interface Aim {
  /** Only this share of the requests, evenly spread: 0.25 is every fourth. */
  share?: number
  /** Only the next N requests (of that share); then the fault is over. */
  next?: number
}

/** @returns a function that says for each request, in turn, whether the fault applies */
export function takeAim({ share = 1, next = Number.POSITIVE_INFINITY }: Aim): () => boolean {
  let left = next
  let owed = 0
  return () => {
    if (left <= 0) return false
    owed += share
    if (owed < 1 - 1e-9) return false // ten times a tenth is less than one
    owed -= 1
    left -= 1
    return true
  }
}
