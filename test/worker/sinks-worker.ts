/** A Worker that only has sinks. A POST sends the counts in its body. */
import { analyticsSink, dataPointsOf } from '../../src/features/observe/analytics.ts'
import { otlpSink } from '../../src/features/observe/otlp.ts'
import type { Counts, Sink } from '../../src/features/observe/report.ts'

const analytics = analyticsSink('METRICS')
let otlp: Sink | undefined

export default {
  async fetch(request: Request, env: Record<string, unknown>) {
    const counts = (await request.json()) as Counts
    otlp ??= otlpSink(String(env.COLLECTOR))
    await analytics.send(counts, env)
    await otlp.send(counts, env)
    return Response.json(dataPointsOf(counts))
  },
}
