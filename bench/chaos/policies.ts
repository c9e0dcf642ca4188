import type { AlgorithmName, ConfigOptions, PolicyOptions } from '../../src/config/options.ts'
import { algorithms } from '../../src/store/local/algorithms/index.ts'

/** The longest a decision may take, in ms: the default, which is what is promised. */
export const DEADLINE_MS = 300
/** What a hot key may have, in all: its window is a day, so nothing of note grows back. */
export const LIMIT = 10
/** Requests that an isolate may admit of that by itself: all of it, which is the default. */
export const SHARE = LIMIT
/** Hot keys are new every two seconds, and asked for twice as often as they have room. */
export const SLICE_MS = 2000

export const modes = ['allow', 'local', 'deny'] as const
export type Mode = (typeof modes)[number]

const names = Object.keys(algorithms) as AlgorithmName[]

/** One path for each way to fail and algorithm, whose hot keys are counted exactly, and one for each way with many keys. */
export const config: ConfigOptions = {
  degradedHeader: true,
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
  /** Whether it is one of a hot key, which is held to its limit. */
  hot: boolean
}

/** The load, the `index`th request of it: three in five go to the hot keys of the moment, all in turn. */
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
