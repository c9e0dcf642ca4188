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
   * @param commands the billed commands of a call without packs. Defaults to 1
   */
  end: (answers: StoreResult[][], sendsTime: boolean, commands?: number) => void
}

/** Hears of each HTTP request to the store. Its methods never throw. */
export interface CallObserver {
  /** @param sent what the request sends, by calls of the script; empty for other commands */
  begin: (sent: Pack[]) => CallInFlight
}
