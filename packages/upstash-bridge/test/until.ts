import { vi } from 'vitest'

/** Waits until a check passes, which takes longer on a busy machine. traffic.ts has one for failovers. */
export const until = (check: () => unknown): Promise<unknown> =>
  vi.waitFor(check, { timeout: 30_000, interval: 5 })
