/** A named part of the traffic. Times are in seconds from the start. */
export interface Phase {
  name: string
  from: number
  to: number
  /** Evenly spaced requests: the first, the last, and the interval. */
  requests: { first: number; last: number; every: number }
}

/** One minute of one client, chosen to show the differences between the algorithms. */
export const PHASES: Phase[] = [
  { name: 'a trickle', from: 0, to: 10, requests: { first: 1, last: 9.4, every: 1.4 } },
  { name: 'a burst', from: 10, to: 22, requests: { first: 12.5, last: 15.3, every: 0.2 } },
  // Ten requests just before a window begins, ten just after.
  { name: 'around an edge', from: 22, to: 37, requests: { first: 28, last: 31.8, every: 0.2 } },
  { name: 'a flood', from: 37, to: 54, requests: { first: 38, last: 52.8, every: 0.2 } },
  { name: 'a trickle', from: 54, to: 60, requests: { first: 54.4, last: 59.6, every: 1.3 } },
]

/** When requests come, in ms from the start. */
export const TRAFFIC: number[] = PHASES.flatMap(({ requests: { first, last, every } }) =>
  Array.from({ length: Math.round((last - first) / every) + 1 }, (_, index) =>
    Math.round((first + index * every) * 1000),
  ),
)

export const LENGTH_MS = PHASES.at(-1)!.to * 1000
