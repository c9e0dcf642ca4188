/** Which requests a fault hits: by default all. */
export interface Aim {
  /** Only this share of the requests, evenly spread: 0.25 is every fourth. */
  share?: number
  /** Only the next so many (of that share); then the fault is over. */
  next?: number
}

/** @returns tells of each request, in turn, whether it is hit */
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
