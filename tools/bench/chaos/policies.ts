import type {
  AlgorithmName,
  ConfigOptions,
  PolicyOptions,
} from '../../../src/core/config/options.ts'
import { algorithms } from '../../../src/core/connection/algorithms/index.ts'

/** The default deadline of a decision, in ms. */
export const DEADLINE_MS = 300
/** The limit of a hot key. Its window is a day, so that almost nothing is refilled during a run. */
export const LIMIT = 10
/** Requests that an isolate may admit by itself in the fallback. Defaults to the whole limit. */
export const SHARE = LIMIT
/** Lifetime of a hot key in ms. The load sends about twice as many requests to a key as its limit admits. */
export const SLICE_MS = 2000

export const modes = ['allow', 'local', 'deny'] as const
export type Mode = (typeof modes)[number]

const names = Object.keys(algorithms) as AlgorithmName[]

/** For each fallback: one path with hot keys for each algorithm, which must be exact, and one path with many keys. */
export const config: ConfigOptions = {
  policies: modes.flatMap((onStoreError): PolicyOptions[] => [
    ...names.map(
      (algorithm): PolicyOptions => ({
        name: `hot-${onStoreError}-${algorithm}`,
        algorithm,
        limit: LIMIT,
        window: '1d',
        key: 'header:x-key',
        match: { path: `/${onStoreError}/${algorithm}` },
        onStoreError,
      }),
    ),
    {
      name: `many-${onStoreError}`,
      limit: 100,
      window: '1m',
      key: 'header:x-key',
      match: { path: `/${onStoreError}/many` },
      onStoreError,
    },
  ]),
}

/** One request of the load. */
export interface Call {
  mode: Mode
  path: string
  key: string
  /** True for a hot key, which must meet its limit exactly. */
  hot: boolean
}

/** Returns request number `index` of the load. Three of five requests go to the current hot keys, in turn. */
export function callAt(index: number, now: number): Call {
  const mode = modes[index % modes.length]!
  const turn = Math.floor(index / modes.length)
  if (turn % 5 >= 3) {
    const key = `many-${Math.floor(Math.random() * 5000)}`
    return { mode, path: `/${mode}/many`, key, hot: false }
  }
  const algorithm = names[(Math.floor(turn / 5) * 3 + (turn % 5)) % names.length]!
  return {
    mode,
    path: `/${mode}/${algorithm}`,
    key: `hot-${Math.floor(now / SLICE_MS)}`,
    hot: true,
  }
}
