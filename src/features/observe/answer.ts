import type { Database } from '../../core/decide/question.ts'
import type { Endpoint } from '../../core/endpoint.ts'
import { OPEN_METRICS, toOpenMetrics } from './open-metrics.ts'
import type { Stats } from './report.ts'

/**
 * The endpoint of `GET /_sluice/v1/stats` and `/metrics`.
 * @param statsOf returns the counts of this isolate
 */
export const reportEndpoint = (
  statsOf: (database: Pick<Database, 'health'>) => Stats,
): Endpoint => ({
  path: /^(\/metrics|\/stats)$/,
  methods: ['GET', 'HEAD'],
  scopes: ['operate'],
  async answer({ rest, request, parts: { database } }) {
    const stats = statsOf(database)
    const [type, text] =
      rest === '/stats'
        ? ['application/json', JSON.stringify(stats)]
        : [OPEN_METRICS, toOpenMetrics(stats)]
    const body = request.method === 'HEAD' ? null : text
    return new Response(body, { headers: { 'Content-Type': type, 'Cache-Control': 'no-store' } })
  },
})
