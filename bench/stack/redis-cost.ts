/** What the scripts cost Redis, by itself: nothing of the Worker or the bridge is in it. */
import { type Bytes, countBytes } from '../cost/bytes.ts'
import { type Figure, measureCpu } from '../cost/cpu.ts'
import { hono } from '../cost/hono.ts'
import { ours } from '../cost/ours.ts'
import { peer } from '../cost/peer.ts'
import type { BenchServer } from '../server.ts'

export interface RedisCost {
  name: string
  /** Which target it is about. */
  id?: 'one' | 'three' | 'sixteen'
  bytes?: Bytes
  /** As many times a bare INCR, of one decision that is admitted; absent where the system does not tell. */
  cpu: Figure | undefined
}

const SHOWN: { by: typeof ours; algorithm: string; id?: RedisCost['id'] }[] = [
  { by: ours, algorithm: 'sliding window', id: 'one' },
  { by: ours, algorithm: 'three limits', id: 'three' },
  { by: ours, algorithm: '16 requests', id: 'sixteen' },
  { by: peer, algorithm: 'sliding window' },
  { by: peer, algorithm: 'three limits' },
]

export async function measureRedisCost(
  server: BenchServer,
  rounds: number,
  log: (line: string) => void,
): Promise<RedisCost[]> {
  await server.send('FLUSHALL')
  const shown = SHOWN.map(({ by, algorithm, id }) => ({
    id,
    contender: by.find((one) => one.algorithm.startsWith(algorithm))!,
  }))
  const bytes: Bytes[] = []
  for (const { contender } of shown) bytes.push(await countBytes(server, contender))
  await server.send('FLUSHALL')
  const contenders = shown.map(({ contender }) => contender)
  const cpu = await measureCpu(server, contenders, rounds, (line) => log(`Redis CPU: ${line}`))
  const rows: RedisCost[] = shown.map(({ id, contender: { by, algorithm } }, index) => ({
    name: `${by}, ${algorithm}`,
    ...(id && { id }),
    bytes: bytes[index]!,
    cpu: cpu.contenders[index]!.admitted.thread,
  }))
  // It counts one by one, which to prepare by the thousands takes longer than it is worth.
  const name = `${hono.by}, ${hono.algorithm}`
  return [
    { name: 'a bare INCR', cpu: cpu.bare.thread },
    ...rows,
    { name, bytes: await countBytes(server, hono), cpu: undefined },
  ]
}
