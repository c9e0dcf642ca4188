/** Soak test: a long load on one isolate, in which some clients disconnect early. Every other request must get a response. */
import { startFarRedis } from '../bridge.ts'
import type { Stack } from '../run.ts'

export interface Soak {
  seconds: number
  requests: number
  admitted: number
  refused: number
  /** Requests whose client disconnected before the response. */
  hangUps: number
  /** Responses other than 200 and 429, and requests without a response. */
  failed: number
}

export async function soak({ server, load, workers }: Stack, seconds: number): Promise<Soak> {
  await server.send('FLUSHALL')
  const far = await startFarRedis(server.url, 10)
  // A limit at which some requests are admitted and some refused, with waits shorter than the test.
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
