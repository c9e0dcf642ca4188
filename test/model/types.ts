/** The types that the files of the model share. */
import type { Limit, StoreRequest } from '../../src/core/connection/store.ts'

export type AlgorithmName = Limit['terms']['algorithm']
/** The fields of a policy that the script receives. */
export type ModelPolicy = Pick<
  Limit['terms'],
  'tag' | 'algorithm' | 'limit' | 'windowMs' | 'burst' | 'align'
> & {
  /** Lengths of calendar periods in ms, repeated from time 0 on. They set the default `period` of a limit (support/complete-limit.ts). */
  lengths?: number[]
  penalty?: Omit<NonNullable<Limit['penalty']>, 'tag'> | undefined
}
export type ModelLimit = Omit<Limit, 'terms'> & { terms: ModelPolicy }
export interface ModelRequest {
  mode: StoreRequest['mode']
  limits: ModelLimit[]
  decidedAt?: number
  banMs?: number
  /** The size and the life of a limit that an operator sets. */
  units?: number
  forMs?: number
}
