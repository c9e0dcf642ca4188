import { type Question, WINDOW_MS } from './contender.ts'

/** What a client has done before it is measured: something in the window before, and in this one. */
export const regular = (client: string): Question[] => [
  { client, units: 30, at: Date.now() - WINDOW_MS },
  { client, units: 20 },
]

/** The same, until nothing is left. What no longer fits is refused, so powers of two fill any rest. */
export const exhausted = (client: string): Question[] => [
  ...regular(client),
  ...[64, 32, 16, 8, 4, 2, 1].map((units) => ({ client, units })),
]
