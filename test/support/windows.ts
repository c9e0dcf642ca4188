import { setTimeout as sleep } from 'node:timers/promises'

/** Waits until the next window of the clock begins. */
export const nextWindow = (windowMs: number) => sleep(windowMs - (Date.now() % windowMs) + 50)

/** Waits for the next window of the clock if the current one ends in less than `neededMs`. */
export async function enoughOf(windowMs: number, neededMs: number) {
  if (windowMs - (Date.now() % windowMs) < neededMs) await nextWindow(windowMs)
}
