/** The types that the files of the model share. */
import type { Limit, StoreRequest } from '../../src/store/store.ts'

export type AlgorithmName = Limit['terms']['algorithm']
/** The part of a policy that the script gets. */
export type ModelPolicy = Pick<
  Limit['terms'],
  'tag' | 'algorithm' | 'limit' | 'windowMs' | 'burst' | 'align'
> & {
  /** The default period of its limits (see support/dress.ts): the lengths of calendar periods that repeat from 0 on. */
  lengths?: number[]
  penalty?: Omit<NonNullable<Limit['penalty']>, 'tag'> | undefined
}
export type ModelLimit = Omit<Limit, 'terms'> & { terms: ModelPolicy }
export interface ModelRequest {
  mode: StoreRequest['mode']
  limits: ModelLimit[]
  decidedAt?: number
  banMs?: number
}
