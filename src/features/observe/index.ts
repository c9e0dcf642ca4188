/** `sluice/observe`: counts decisions, finds the clients with the most refusals, and reports both. */
import type { Observe } from '../../core/base/observer.ts'
import { createObserver } from './observer.ts'
import { type ObserveOptions, parseOptions } from './options.ts'

export type { Observe } from '../../core/base/observer.ts'
export type { DecidedBy, DecisionEvent, DecisionOutcome } from './event.ts'
export type { NearLimitNotice } from './near-limit.ts'
export type { ObserveOptions } from './options.ts'
export type { Counts, Dropped, Histogram, Offender, Series, Stats, StoreUsage } from './report.ts'

/**
 * Makes the field `observe` of a configuration. It adds no call to Redis.
 * @throws {ConfigError} immediately, if the options are invalid
 * @example
 * defineConfig({
 *   policies: [{ name: 'per-ip', limit: 100, window: '1m' }],
 *   observe: observe({ to: 'log' }),
 * })
 */
export function observe(options: ObserveOptions = {}): Observe {
  const settings = parseOptions(options)
  return { create: ({ log }) => createObserver(settings, log) }
}
