/**
 * For how long a call waits for its turn if it does not say so, ms. Proxies and clients give a decision one second, and let the request pass
 * then. The rest of the second is for the calls of the store and the network.
 */
export const HELD_MS = 500
