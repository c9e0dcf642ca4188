/** Measures the cost of the scripts for Redis alone, without Worker and bridge. */
import { type Bytes, countBytes } from '../cost/bytes.ts'
import { measureCpu, type Outcome } from '../cost/cpu.ts'
import { floor } from '../cost/floor.ts'
import { hono } from '../cost/hono.ts'
import { ours } from '../cost/ours.ts'
import { peer } from '../cost/peer.ts'
import type { BenchServer } from '../server.ts'

export interface RedisCost {
  by: string
  algorithm: string
  bytes?: Bytes
  /** CPU of one decision, relative to a bare INCR of the same round; absent if it was not measured. */
  cpu?: Record<Outcome, number[]>
}

const SHOWN: [by: typeof ours, algorithm: string][] = [
  [ours, 'sliding window'],
  [ours, 'three limits'],
  [ours, '16 requests'],
  [peer, 'sliding window'],
  [peer, 'three limits'],
]

/** @param clients number of clients in a round */
export async function measureRedisCost(
  server: BenchServer,
  options: { rounds: number; clients: number; log: (line: string) => void },
): Promise<RedisCost[]> {
  await server.send('FLUSHALL')
  const contenders = [
    floor,
    ...SHOWN.map(([list, start]) => list.find(({ algorithm }) => algorithm.startsWith(start))!),
  ]
  const bytes: Bytes[] = []
  // hono-rate-limiter counts units one by one, so the preparation of its CPU measurement would take too long.
  for (const contender of [...contenders, hono]) bytes.push(await countBytes(server, contender))
  await server.send('FLUSHALL')
  const cpu = await measureCpu(server, contenders, options)
  return [...contenders, hono].map(({ by, algorithm }, index) => {
    const { admitted, refused } = cpu.contenders[index] ?? {}
    return {
      by,
      algorithm,
      bytes: bytes[index]!,
      ...(admitted?.thread &&
        refused?.thread && {
          cpu: { admitted: admitted.thread.ratios, refused: refused.thread.ratios },
        }),
    }
  })
}
