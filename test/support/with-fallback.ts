/** Stores with the layer that answers by `onStoreError`. */
import { StoreError } from '../../src/core/base/errors.ts'
import { Timeout } from '../../src/core/connection/deadline.ts'
import type { Store, StoreReply } from '../../src/core/connection/store.ts'
import type { DenialCache } from '../../src/core/decide/denial-cache.ts'
import { type FallbackOptions, withFallback } from '../../src/core/fallback/fallback.ts'
import { createLocalStore } from '../../src/core/fallback/local.ts'
import { storeOf } from './store-of.ts'

/** Puts the fallback on a store, with what a limiter would give it. Collects the errors. */
export function fallbackOver(
  store: Store,
  options: Partial<FallbackOptions> & { denialCache?: DenialCache | undefined } = {},
) {
  const errors: string[] = []
  const { denialCache } = options
  const layer = withFallback(store, {
    local: createLocalStore(),
    onStoreError: ({ code }) => void errors.push(code),
    onRefund(subjects, error) {
      denialCache?.forget(Date.now(), subjects)
      if (error) errors.push(error.code)
    },
    ...options,
  })
  return { store: layer, errors }
}

/** A store that fails. */
export const failing = (error: StoreError = new StoreError('unreachable')): Store =>
  storeOf(() => Promise.reject(error))

/** A store whose first call times out. Its late reply arrives on `release`. `answerRest` decides all other calls. */
export function lateStore(inner: Store, answerRest: Store['decide'] = inner.decide) {
  const { promise: late, resolve } = Promise.withResolvers<StoreReply>()
  let release: (() => void) | undefined
  const decide: Store['decide'] = async (requests, options) => {
    if (release) return answerRest(requests, options)
    const reply = await inner.decide(requests, options)
    release = () => resolve(reply)
    throw new Timeout(late)
  }
  return { store: storeOf(decide), release: () => release!() }
}
