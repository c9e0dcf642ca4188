import { setTimeout as sleep } from 'node:timers/promises'

/** A fault of the store. `hurt` injects it and removes it before it resolves. */
export interface Phase<Stack> {
  name: string
  /** Injects the fault for `ms`, or until `signal` aborts. Calls `lost` when the store loses its counters. */
  hurt?: (stack: Stack, ms: number, signal: AbortSignal, lost: () => void) => Promise<unknown>
}

/** A stack with a Redis, and with something between it and the limiter that can delay and spoil its answers. */
export interface RedisStack {
  kill(): Promise<void>
  restart(): Promise<void>
  pause(): () => void
  flushScripts(): Promise<void>
  /** Delays answers from now on, ms. */
  delay(ms: number): unknown
  /** Spoils answers from now on, in a way that depends on `turn`; `undefined` ends it. */
  spoil(turn: number | undefined): unknown
}

/** Faults of Redis. */
export const phases: Phase<RedisStack>[] = [
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
    async hurt(stack, ms, signal) {
      await stack.delay(1000)
      await wait(ms, signal).finally(() => stack.delay(0))
    },
  },
  {
    name: 'scripts flushed',
    hurt: (stack, ms, signal) => repeatedly(ms, 100, signal, () => stack.flushScripts()),
  },
  {
    name: 'returns garbage',
    async hurt(stack, ms, signal) {
      let turn = 0
      const next = async () => void (await stack.spoil(turn++))
      await repeatedly(ms, 100, signal, next).finally(() => stack.spoil(undefined))
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
