/** For how long a call waits for its turn by default, ms: proxies and clients give a decision one second, of which the calls need the rest. */
export const HELD_MS = 500
