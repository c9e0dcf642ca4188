import { setTimeout as sleep } from 'node:timers/promises'
import type { FaultText } from '../../../test/support/fault-proxy/index.ts'
import type { ChaosStack } from './stack.ts'

/** A fault of the store. `hurt` injects it and removes it before it resolves. */
export interface Phase<Stack> {
  name: string
  /** Injects the fault for `ms`, or until `signal` aborts. Calls `lost` when the store loses its counters. */
  hurt?: (stack: Stack, ms: number, signal: AbortSignal, lost: () => void) => Promise<unknown>
}

const garbage: FaultText[] = [
  'garbage',
  'html=502',
  'truncated',
  'wrong-types=fraction',
  'wrong-shape',
  'json={}',
  'html=200',
  'redis-error',
]

/** Faults of Redis. */
export const phases: Phase<ChaosStack>[] = [
  { name: 'none' },
  {
    name: 'killed and restarted',
    async hurt(stack, ms, signal, lost) {
      lost()
      await stack.kill()
      try {
        await wait(ms, signal)
      } finally {
        await stack.restart()
      }
    },
  },
  {
    name: 'paused (SIGSTOP)',
    async hurt(stack, ms, signal) {
      const resume = stack.pause()
      await wait(ms, signal).finally(resume)
    },
  },
  {
    name: 'delayed by 1 s',
    async hurt({ faults }, ms, signal) {
      await faults.set('delay=1000')
      await wait(ms, signal).finally(() => faults.set(null))
    },
  },
  {
    name: 'scripts flushed',
    hurt: (stack, ms, signal) => repeatedly(ms, 100, signal, () => stack.flushScripts()),
  },
  {
    name: 'returns garbage',
    async hurt({ faults }, ms, signal) {
      let turn = 0
      const next = () => faults.set(garbage[turn++ % garbage.length]!)
      await repeatedly(ms, 100, signal, next).finally(() => faults.set(null))
    },
  },
]

export const wait = (ms: number, signal: AbortSignal) => sleep(ms, undefined, { signal })

async function repeatedly(
  ms: number,
  everyMs: number,
  signal: AbortSignal,
  work: () => Promise<void>,
): Promise<void> {
  const until = performance.now() + ms
  while (performance.now() < until) {
    await work()
    await wait(everyMs, signal)
  }
}
