/** What `observe` and each destination of its settings do. A built configuration imports those that it needs. */
import type { Feature } from '../../core/feature.ts'
import { createObserver, type Destinations } from './observer.ts'
import { reportEndpoint } from './open-metrics.ts'
import type { ObserveSettings } from './options.ts'

export { analyticsSink as analytics } from './analytics.ts'
export { createNearLimit as webhook } from './near-limit.ts'
export { otlpSink as otlp } from './otlp.ts'
export { createReports as reports, logSink as log } from './reports.ts'
export { mark as trace } from './trace.ts'

/** @param destinations at least those of the settings */
export const observing = (settings: ObserveSettings, destinations: Destinations): Feature => ({
  name: 'observe',
  compile({ log }) {
    const observer = createObserver(settings, destinations, log)
    return { observer, endpoints: [reportEndpoint(observer.statsOf)] }
  },
})
