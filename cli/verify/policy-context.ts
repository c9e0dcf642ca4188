import type { Config } from '../../src/core/config/parse.ts'
import type { Client } from './client.ts'
import type { KnownRoute, LocalMatcher } from './sample.ts'

/** What the checks of one deployment share. */
export interface PolicyContext {
  client: Client
  config: Config
  /** The host of the address. */
  host: string
  /** The fields of `--header`. */
  headers: Record<string, string>
  match: LocalMatcher
  /** Routes of the app: of `--path`, and of `expect`. */
  known: KnownRoute[]
  /** The longest wait for a refused quota, ms. */
  maxWaitMs: number
  /** The patterns of the Worker's routes, if they are known. */
  routes: string[]
  /** The framework of the app, as it names itself in an answer. */
  poweredBy: string
}
