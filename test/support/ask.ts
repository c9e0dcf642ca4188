/** One limit and one request, for tests of single cases. */
import type { StoreState } from '../../src/core/connection/store.ts'
import type { ModelLimit, ModelPolicy, ModelRequest } from '../model/model.ts'
import type { Server } from './server.ts'
import { newSubject } from './subjects.ts'

/** A time of Redis' clock. */
export const start = 1_789_000_000_000

/** Ten units per second, except for the given terms. */
export const policyOf = (terms: Partial<ModelPolicy> = {}): ModelPolicy => ({
  tag: 't',
  algorithm: 'fixed-window',
  limit: 10,
  windowMs: 1000,
  burst: 10,
  align: 'first-request',
  ...terms,
})

/** One unit of a new subject. */
export const rowOf = (terms: Partial<ModelPolicy> = {}, cost = 1): ModelLimit => ({
  subject: newSubject(),
  terms: policyOf(terms),
  cost,
})

/** Asks for one limit. Returns its state in the reply. */
export async function ask(
  server: Server,
  mode: ModelRequest['mode'],
  row: ModelLimit,
  now?: number,
  more: Partial<ModelRequest> = {},
): Promise<StoreState> {
  return (await server.decide([{ mode, limits: [row], ...more }], now)).states[0]![0]!
}
