/** The parts that features add to the general script. */
import type { QuotaState } from '../../base/decision.ts'
import type { Limit, Penalty, StoreRequest } from '../store.ts'

/** How the Worker writes and reads what only the parts of features know. lua/README.md is the contract. */
export interface Codec {
  /** Write the option of a limit with this algorithm. A charge needs it. Throw a `StoreError` for an invalid one. */
  concurrency?: WriteOption
  distinct?: WriteOption
  /** Reads the state of a limit with a key of its own. Returns `undefined` if it does not have the form of one. */
  apart?: (part: string, limit: Limit) => QuotaState | undefined
  override?: LimitCodec
  line?: LimitCodec
  penalty?: {
    write: (request: StoreRequest, penalty: Penalty, place: string) => string
    read: (part: string, state: QuotaState) => QuotaState | undefined
  }
}

interface LimitCodec {
  write: (request: StoreRequest, limit: Limit, place: string) => string
  /** @param stateOf reads the state of the limit in another size, or with a floor */
  read: (
    part: string,
    limit: Limit,
    stateOf: (limit: Limit) => QuotaState | undefined,
  ) => QuotaState | undefined
}

type WriteOption = (
  limit: Pick<Limit, 'slot' | 'values'>,
  isCharge: boolean,
  place: string,
) => string

export interface ScriptPart extends Codec {
  text: string
}
