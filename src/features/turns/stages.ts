import { isUsed } from '../../core/config/feature.ts'
import type { Feature } from '../../core/feature.ts'
import { lines } from './part.ts'
import { createRoom } from './room.ts'
import { createWaiting } from './wait.ts'

/** The requests that an isolate holds by default. */
export const MAX_WAITING = 1_000

/** What it does, without what it adds to configurations. */
export const compileFor =
  (maxWaiting: number): Feature['compile'] =>
  ({ config }) =>
    isUsed(config, ({ wait }) => wait)
      ? { lua: [lines], waiting: createWaiting(createRoom(maxWaiting)) }
      : {}

export const turns = compileFor(MAX_WAITING)
