/** A long load on one isolate, clients that leave in the middle among it: every request has its answer. */
import { startFarRedis } from '../bridge.ts'
import type { Stack } from '../run.ts'

export interface Soak {
  seconds: number
  requests: number
  admitted: number
  refused: number
  /** Of which the client left before the answer. */
  hangUps: number
  /** Neither 2xx nor 429, or no answer at all. */
  failed: number
}

export async function soak({ server, load, workers }: Stack, seconds: number): Promise<Soak> {
  await server.send('FLUSHALL')
  const far = await startFarRedis(server.url, 10)
  // Some are admitted, some refused, and a refusal ends before the soak does.
  const isolate = await workers.start('ours', [{ limit: 10, windowMs: 2000 }], far)
  try {
    const { statuses, count, hangUps } = await load.run({
      ports: [isolate.port],
      network: 0,
      clients: 200,
      connections: 64,
      ms: seconds * 1000,
      hangUps: 0.02,
    })
    const [admitted = 0, refused = 0] = [statuses[200], statuses[429]]
    const failed = count - admitted - refused
    return { seconds, requests: count + hangUps, admitted, refused, hangUps, failed }
  } finally {
    await isolate.stop()
    await far.stop()
  }
}
