import { expect, test } from 'vitest'
import type { Figures } from '../../../tools/bench/chaos/figures.ts'
import { objectFaults } from '../../../tools/bench/chaos/objects-worker.ts'
import { runChaos } from '../../../tools/bench/chaos/run.ts'

/**
 * Reports whether decisions keep their deadline without a fault. Otherwise the machine is too busy: the circuit opens again without a fault, and
 * no recovery can be measured.
 */
const isMeasurable = ([none]: Figures[]) => none!.fallback < none!.requests / 100

// `npm run chaos` checks the slowest responses. Here they would depend on the load of other tests.
test.each([
  ['behind a Worker', 'redis'],
  ['with the client of a Node server', 'client'],
] as const)(
  'During faults of Redis %s no request gets an unexpected 5xx, no limit is exceeded, and Redis soon decides again.',
  async (_, store) => {
    const { phases, rate, scripts } = await runChaos({ seconds: 20, rate: 200, store })
    expect(rate).toBeGreaterThan(30) // of 200: the rest is tolerance for a slow machine
    // Compiled scripts decide: a general one for logs, and one for each of the twelve policies with windows and buckets.
    expect(scripts).toBeGreaterThanOrEqual(1 + 12)
    expect(phases.map(({ phase }) => phase)).toEqual([
      'none',
      'killed and restarted',
      'paused (SIGSTOP)',
      'delayed by 1 s',
      'scripts flushed',
      'returns garbage',
    ])
    for (const figures of phases) {
      expect(figures.requests).toBeGreaterThan(90)
      expect(figures).toMatchObject({ errors: 0, overAdmitted: 0, localOverAdmitted: 0 })
      expect(figures.keys).toBeGreaterThan(0)
      // The target is 2; the rest is tolerance for a slow machine.
      if (isMeasurable(phases)) expect(figures.recoveryLessStallSeconds ?? 0).toBeLessThan(4)
    }
    const fallback = (name: string) => phases.find(({ phase }) => phase === name)!.fallback
    for (const phase of [
      'killed and restarted',
      'paused (SIGSTOP)',
      'delayed by 1 s',
      'returns garbage',
    ])
      expect(fallback(phase)).toBeGreaterThan(30) // otherwise the fault had no effect
  },
  120_000,
)

test('During faults of Durable Objects no request gets an unexpected 5xx, no limit is exceeded, and the objects soon decide again.', async () => {
  const { phases } = await runChaos({ seconds: 20, rate: 200, store: 'durable-objects' })
  expect(phases.map(({ phase }) => phase)).toEqual(['none', ...objectFaults])
  for (const figures of phases) {
    expect(figures.requests).toBeGreaterThan(90)
    expect(figures).toMatchObject({ errors: 0, overAdmitted: 0, localOverAdmitted: 0 })
    expect(figures.keys).toBeGreaterThan(0)
    if (isMeasurable(phases)) expect(figures.recoveryLessStallSeconds ?? 0).toBeLessThan(4)
    // Otherwise the fault had no effect.
    if (figures.phase !== 'none') expect(figures.fallback).toBeGreaterThan(30)
  }
}, 120_000)
