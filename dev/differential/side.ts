/** One of the two sides, and what it answers. */
import type { Sluice } from '../../src/hosts/app/sluice.ts'
import type { Drawn } from './configs.ts'

interface Gateway {
  fetch: (request: Request, env: object, context: object) => Response | Promise<Response>
}

export type Limiter = { check: Sluice['check'] } | { fetch: Gateway['fetch'] }

/** The answer to a request, with all that follows from it. */
export type Answer =
  | { decided: object | undefined; status: number; headers: [string, string][]; body: unknown }
  | { error: string }

/** What came of the requests of a run. */
export interface Played {
  answers: Answer[]
  log: string[]
  /** The records in Redis, by their keys without the namespace. */
  records: Record<string, unknown>
}

export interface Side {
  name: string
  /** The names of its features. */
  features: ReadonlySet<string>
  /** @throws Error if the configuration is invalid */
  create: (drawn: Drawn, namespace: string) => Limiter
  /** Leaves out what has changed on purpose since its commit. Absent if nothing has. */
  since?: {
    restrict: (drawn: Drawn) => void
    /** @returns the text of a request */
    restrictRequest: (text: string, drawn: Drawn) => string
    restrictResult: (played: Played, drawn: Drawn) => Played
  }
}
