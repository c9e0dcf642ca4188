import { expect, test } from 'vitest'
import { runChaos } from '../chaos/run.ts'

// Slowest answers are not asserted here but by `npm run chaos`: beside other tests they tell of the machine.
test('under a steady load everything happens to Redis, and no request gets an undeclared 5xx, none is admitted beyond its limit, and all is well again soon', async () => {
  const { phases, rate } = await runChaos({ seconds: 20, rate: 200 })
  expect(rate).toBeGreaterThan(150)
  expect(phases.map(({ phase }) => phase)).toEqual([
    'nothing',
    'killed, restarted',
    'paused (SIGSTOP)',
    'slowed to 1 s',
    'scripts flushed',
    'answers garbage',
  ])
  for (const figures of phases) {
    expect(figures.requests).toBeGreaterThan(300)
    expect(figures).toMatchObject({ errors: 0, overAdmitted: 0, localOverAdmitted: 0 })
    expect(figures.keys).toBeGreaterThan(0)
    expect(figures.recoveryLessStallSeconds ?? 0).toBeLessThan(4) // two, and as much again for the machine
  }
  const fallback = (name: string) => phases.find(({ phase }) => phase === name)!.fallback
  for (const phase of ['killed, restarted', 'paused (SIGSTOP)', 'slowed to 1 s', 'answers garbage'])
    expect(fallback(phase)).toBeGreaterThan(30) // else nothing was done
}, 120_000)
