import { type Question, WINDOW_MS } from './contender.ts'

/** The earlier requests of a client: some in the previous window, and some in the current one. */
export const regular = (client: string): Question[] => [
  { client, units: 30, at: Date.now() - WINDOW_MS },
  { client, units: 20 },
]

/** The same, and requests that use up the limit. Too large ones are refused, so powers of two fill any remainder. */
export const exhausted = (client: string): Question[] => [
  ...regular(client),
  ...[64, 32, 16, 8, 4, 2, 1].map((units) => ({ client, units })),
]
