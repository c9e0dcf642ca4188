import type { Limiter } from '../../core/feature.ts'

/** The limiter of the gateway of this Worker, for its other entrypoints: the platform makes these without arguments. */
export const deployed: { limiter?: Limiter } = {}
