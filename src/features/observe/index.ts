import type { Feature } from '../../core/feature.ts'
import * as all from './destinations.ts'
import { type ObserveOptions, parseOptions } from './options.ts'

export type { DecidedBy, DecisionEvent, DecisionOutcome } from './event.ts'
export type { NearLimitNotice } from './near-limit.ts'
export type { ObserveOptions } from './options.ts'
export type { Counts, Dropped, Histogram, Offender, Series, Stats, StoreUsage } from './report.ts'

/**
 * Counts decisions, finds the clients with the most refusals, and reports both. It adds no call to Redis.
 * @throws {ConfigError} immediately, if the options are invalid
 * @example
 * defineConfig({
 *   policies: [{ name: 'per-ip', limit: 100, window: '1m' }],
 *   use: [observe({ to: 'log' })],
 * })
 */
export function observe(options: ObserveOptions = {}): Feature {
  const settings = parseOptions(options)
  const kinds = settings.to.map((destination) => destination.split(':')[0]!)
  if (kinds.some((kind) => kind !== 'trace')) kinds.push('reports')
  if (settings.webhook) kinds.push('webhook')
  return {
    ...all.observing(settings, all),
    built: { maker: 'observing', settings, parts: [...new Set(kinds)] },
  }
}
