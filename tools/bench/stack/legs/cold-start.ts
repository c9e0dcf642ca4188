/** Measures the CPU of a cold start: from the start of a process of workerd until it has answered its first request. */
import { setTimeout as sleep } from 'node:timers/promises'
import { startFarRedis } from '../bridge.ts'
import { cpuOf } from '../cpu.ts'
import type { Stack } from '../run.ts'
import type { VariantId } from '../variants.ts'

/** CPU time in ms of the process, for each round; absent if the system does not report it. */
export type ColdStarts = Partial<Record<VariantId, number[]>>

const contenders: VariantId[] = [
  'nothing',
  'bare',
  'ours',
  'ours-unbuilt',
  'ours-limits',
  'ours-limits-unbuilt',
  'upstash-sliding',
  'hono',
]
const quotas = [{ limit: 1_000_000, windowMs: 3_600_000 }]

/** Starts the variants in turn, so that other load on the machine affects all equally. */
export async function measureColdStarts(
  { server, workers, takes }: Stack,
  rounds: number,
): Promise<ColdStarts> {
  const variants = contenders.filter(takes)
  const results = Object.fromEntries(variants.map((id) => [id, [] as number[]]))
  const far = await startFarRedis(server.url, 0)
  try {
    for (let round = 0; round <= rounds; round++) {
      for (const id of variants) {
        const { port, pid, stop } = await workers.start(id, quotas, far)
        try {
          const headers = { 'cf-connecting-ip': '10.0.0.1' }
          const { status } = await fetch(`http://127.0.0.1:${port}/`, { headers })
          if (status !== 200) throw new Error(`${id} responded with ${status}`)
          const ms = await cpuOf(pid)
          // Round 0 loads the files and the scripts of Redis.
          if (ms !== undefined && round > 0) results[id]!.push(ms)
        } finally {
          await stop()
        }
        await sleep(20)
      }
    }
  } finally {
    await far.stop()
  }
  return results
}
