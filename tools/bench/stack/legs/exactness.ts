/** Tests that a limit is exact: one client, 256 requests at once, two isolates. */
import { startFarRedis } from '../bridge.ts'
import type { Stack } from '../run.ts'
import type { VariantId } from '../variants.ts'

export interface Exactness {
  id: VariantId
  asked: number
  admitted: number
  /** Requests admitted beyond the limit, and requests missing to the limit. */
  over: number
  under: number
  /** Requests neither admitted nor refused. */
  failed: number
}

const LIMIT = 100
const REQUESTS = 1024
/** Long enough that nothing is refilled during the run. */
const WINDOW_MS = 86_400_000

const contenders: VariantId[] = [
  'ours',
  'ours-unbatched',
  'ours-uncached',
  'ours-edge',
  'ours-fixed',
  'ours-log',
  'ours-bucket',
  'ours-gcra',
  'upstash-fixed',
  'upstash-sliding',
  'upstash-bucket',
  'upstash-sliding-cache',
  'hono',
]

export async function measureExactness({
  server,
  load,
  workers,
  takes,
}: Stack): Promise<Exactness[]> {
  const results: Exactness[] = []
  const far = await startFarRedis(server.url, 10)
  try {
    for (const id of contenders.filter(takes)) {
      await server.send('FLUSHALL')
      const quotas = [{ limit: LIMIT, windowMs: WINDOW_MS }]
      const isolates = await Promise.all([1, 2].map(() => workers.start(id, quotas, far)))
      try {
        const { statuses, count } = await load.run({
          ports: isolates.map(({ port }) => port),
          network: 0,
          clients: 1,
          connections: 256,
          requests: REQUESTS,
        })
        const admitted = statuses[200] ?? 0
        results.push({
          id,
          asked: count,
          admitted,
          over: Math.max(0, admitted - LIMIT),
          under: Math.max(0, LIMIT - admitted),
          failed: count - admitted - (statuses[429] ?? 0),
        })
      } finally {
        await Promise.all(isolates.map((isolate) => isolate.stop()))
      }
    }
  } finally {
    await far.stop()
  }
  return results
}
