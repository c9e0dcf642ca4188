/** One of the two sides, and what it answers. */
import type { Drawn } from './configs.ts'
import type { Answer, Limiter } from './hosts.ts'

/** What came of the requests of a run. */
export interface Played {
  answers: Answer[]
  log: string[]
  /** What the store has kept, by its keys without the namespace. */
  records: Record<string, unknown>
}

export interface Side {
  name: string
  /** True if one of its entries exports a name. */
  exports: (name: string) => boolean
  /** The class of Durable Objects. */
  Objects: unknown
  /** @throws Error if the configuration is invalid */
  create: (drawn: Drawn, namespace: string) => Limiter
}
