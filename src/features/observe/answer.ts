import type { Database } from '../../core/decide/question.ts'
import type { Call, Endpoint } from '../../core/endpoint.ts'
import { OPEN_METRICS, toOpenMetrics } from './open-metrics.ts'
import type { Stats } from './report.ts'

/** A call to a report. */
export interface ReportCall extends Pick<Call, 'request'> {
  database: Pick<Database, 'isOpen'>
}

/** Answers `/stats` or `/metrics`. */
export type Answer = (path: string, call: ReportCall) => Promise<Response>

/**
 * Answers `GET /_sluice/v1/stats` and `/metrics`.
 * @param stats returns the counts of this isolate
 */
export function createAnswer(stats: (call: ReportCall) => Stats): Answer {
  return async (path, call) => {
    const counts = stats(call)
    const [type, text] =
      path === '/stats'
        ? ['application/json', JSON.stringify(counts)]
        : [OPEN_METRICS, toOpenMetrics(counts)]
    const body = call.request.method === 'HEAD' ? null : text
    return new Response(body, { headers: { 'Content-Type': type, 'Cache-Control': 'no-store' } })
  }
}

/** The endpoint of the reports. */
export const reportEndpoint = (answer: Answer): Endpoint => ({
  path: /^(\/metrics|\/stats)$/,
  methods: ['GET', 'HEAD'],
  scopes: ['operate'],
  answer: ({ rest, request, parts: { database } }) => answer(rest, { request, database }),
})
