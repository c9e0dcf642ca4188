/** Measures the cost of the scripts for Redis alone, without Worker and bridge. */
import { type Bytes, countBytes } from '../cost/bytes.ts'
import { type Figure, measureCpu } from '../cost/cpu.ts'
import { hono } from '../cost/hono.ts'
import { ours } from '../cost/ours.ts'
import { peer } from '../cost/peer.ts'
import type { BenchServer } from '../server.ts'

export interface RedisCost {
  name: string
  /** The target that uses this value. */
  id?: 'one' | 'three' | 'sixteen'
  bytes?: Bytes
  /** CPU of one admitted decision; absent if the system does not report it. */
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
  // hono-rate-limiter counts units one by one, so the preparation of its CPU measurement would take too long.
  const name = `${hono.by}, ${hono.algorithm}`
  return [
    { name: 'a bare INCR', cpu: cpu.bare.thread },
    ...rows,
    { name, bytes: await countBytes(server, hono), cpu: undefined },
  ]
}
