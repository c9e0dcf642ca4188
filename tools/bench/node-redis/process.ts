/** A process with one contender, which tools/bench/node-redis.ts starts. It answers each order of its parent. */
import { quantile } from '../statistics.ts'
import { apps, calls, listen } from './contenders.ts'
import { type Load, make } from './load.ts'

/** An order: to make calls, or to tell the CPU time that the process has used, µs. */
export type Order = Load | 'cpu'

/** The answer to a load. */
export interface Cost {
  /** CPU time for one call, µs. */
  cpuUs: number
  /** The duration of the median call, ms. */
  p50: number
}

function cpuUs(): number {
  const { user, system } = process.cpuUsage()
  return user + system
}

async function cost(call: (key: string) => Promise<unknown>, load: Load): Promise<Cost> {
  const before = cpuUs()
  const times = await make(call, load)
  return { cpuUs: (cpuUs() - before) / load.calls, p50: quantile(times, 0.5) }
}

const name = process.argv[2]!
const call = calls[name]?.()
const port = call ? undefined : await listen(apps[name]!())
process.on('message', async (order: Order) => {
  process.send!(order === 'cpu' ? cpuUs() : await cost(call!, order))
})
process.send!({ port })
