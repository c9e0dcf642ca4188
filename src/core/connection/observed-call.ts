/** What an observer hears of the calls to the store. Types only. */
import type { StoreCall, StoreResult } from './store.ts'
import type { Pack } from './upstash/pack.ts'

/** A call in flight. */
export interface CallInFlight {
  call: StoreCall
  /**
   * Ends the call.
   * @param answers those of each call of the script
   * @param sendsTime true with `clock: 'edge'`
   */
  end: (answers: StoreResult[][], sendsTime: boolean) => void
}

/** Hears of each HTTP request to the store. Its methods never throw. */
export interface CallObserver {
  /** @param sent what the request sends, by calls of the script; empty for a plain command */
  begin: (sent: Pack[]) => CallInFlight
}
