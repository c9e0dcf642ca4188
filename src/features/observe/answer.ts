import type { Database } from '../../core/decide/question.ts'
import type { Call, Endpoint } from '../../core/endpoint.ts'
import { readsAnalytics } from './analytics-read.ts'
import { OPEN_METRICS, toOpenMetrics } from './open-metrics.ts'
import type { Stats } from './report.ts'

/** A call to a report. */
export interface ReportCall extends Pick<Call, 'request'> {
  env: Call['runtime']['env']
  database: Pick<Database, 'isOpen'>
}

/** Answers `/stats` or `/metrics`. */
export type Answer = (path: string, call: ReportCall) => Promise<Response>

interface AnswerParts {
  /** Returns the counts of this isolate. */
  stats: (call: ReportCall) => Stats
  /** Returns the counts of all isolates, or `undefined` if they cannot be read. */
  readAnalytics: (env: ReportCall['env']) => Promise<Stats | undefined>
}

/** Answers `GET /_sluice/v1/stats` and `/metrics`, with the counts of all isolates if they can be read. */
export function createAnswer({ stats, readAnalytics }: AnswerParts): Answer {
  return async (path, call) => {
    const all = await readAnalytics(call.env)
    if (!all && path === '/metrics' && readsAnalytics(call.env)) return unread()
    const own = stats(call)
    const counts = all ? { ...all, circuit: own.circuit } : own
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
  answer: ({ rest, request, parts: { database }, runtime: { env } }) =>
    answer(rest, { request, env, database }),
})

/** The counts of one isolate are no substitute here: Prometheus would take the change for a reset of all counters, and for a surge. */
function unread(): Response {
  const detail = 'The Analytics Engine cannot be read. The log says why.'
  return Response.json(
    { type: 'about:blank', status: 503, title: 'Service Unavailable', detail },
    {
      status: 503,
      headers: { 'Content-Type': 'application/problem+json', 'Cache-Control': 'no-store' },
    },
  )
}
