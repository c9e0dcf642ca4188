/** What callers of the decision API send: types only, imported by anyone, importing nobody. `schema/api.ts` checks them. */

/** One value of a policy's key; a text has at most 1024 characters. */
export type KeyValue = string | number

/** The values of a policy's key, in its order; `null` is a part that is missing. One value alone for a key of one part. */
export type KeyValues = KeyValue | (KeyValue | null)[]

/** A request as a caller tells of it: what policies would see of it, were it here. */
export interface RequestDescription {
  /** Default `GET`. */
  method?: string | undefined
  /** Absolute, `http` or `https`, up to 8192 characters. */
  url: string
  /** The client's address; without it the key `ip` is missing. */
  ip?: string | undefined
  /** Up to 100, each value up to 8192 characters. */
  headers?: Record<string, string> | undefined
  /** ISO 3166-1 alpha-2. */
  country?: string | undefined
  /** The number of the client's autonomous system. */
  asn?: number | string | undefined
  /** IATA code of a data centre. */
  colo?: string | undefined
}

/** One policy, whose quota told by hand: its `match` and the lists are not asked. */
export interface ByPolicy {
  policy: string
  key: KeyValues
  plan?: string | undefined
}

/** Whatever policies the request meets, as in the proxy. */
export interface ByRequest {
  request: RequestDescription
}

interface AskOptions {
  /** Units, whole, from 0 to 2^51; default what the policy or its rules say. By a request, it holds for every policy met. */
  cost?: number | undefined
  /** `look` charges nothing. Default `take`. */
  mode?: 'take' | 'peek' | undefined
}

/** One thing to decide. */
export type Ask = (ByPolicy & AskOptions) | (ByRequest & AskOptions)

interface RefundOptions {
  /** Units; default as of an ask. */
  cost?: number | undefined
  /** `decidedAt` of the decision. */
  decidedAt?: number | undefined
  /** `slot` of the decision. */
  slot?: string | undefined
}

/** What was taken and is not needed. */
export type Refund = (ByPolicy & RefundOptions) | (ByRequest & RefundOptions)
