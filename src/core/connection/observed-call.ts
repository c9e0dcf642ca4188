/** What an observer hears of the calls to the store. Types only. */
import type { StoreError } from '../base/errors.ts'
import type { StoreCall, StoreResult } from './store.ts'
import type { Pack } from './upstash/pack.ts'

/** The reply of a script to one call, or an error. reply.ts checks its form. */
export type ScriptAnswer = string | StoreError

export interface CallInFlight {
  call: StoreCall
  /** Ends the call with the replies of each call of the script, and the number of billed commands, or from what it follows. */
  end: (replies: StoreResult[], bill: number | Bill) => void
}

/** From what the bill of scripts follows. */
export interface Bill {
  answers: ScriptAnswer[]
  /** True with `clock: 'edge'`. */
  sendsTime: boolean
}

/** Hears of each HTTP request to the store. Its methods never throw. */
export interface CallObserver {
  /** @param sent what it sends, by calls of the script; empty for other commands, of which `isOperators` are those of an operator */
  begin: (sent: Pack[], isOperators?: boolean) => CallInFlight
}
