/** Lines of a log, and their replay, for tests. */

import { createLineMatcher } from '../../cli/replay/decide/matcher.ts'
import type { PrivateRedis } from '../../cli/replay/decide/private-redis.ts'
import { replayerOn } from '../../cli/replay/decide/replayer.ts'
import type { Decided } from '../../cli/replay/decide/verdict.ts'
import type { Fact, LogLine } from '../../cli/replay/line.ts'
import type { ConfigOptions } from '../../src/core/config/options.ts'
import { parseConfig } from '../../src/core/config/parse.ts'
import { defaultFields } from '../../src/features/defaults.ts'

/** A Monday at noon, UTC. */
export const NOON = Date.UTC(2026, 0, 5, 12)

/** A line at `ms` after noon. */
export const lineAt = (ms: number, more: Partial<LogLine> = {}): LogLine => ({
  time: NOON + ms,
  ip: '203.0.113.7',
  method: 'GET',
  target: '/',
  ...more,
})

export const someFacts: ReadonlySet<Fact> = new Set<Fact>([
  'ip',
  'host',
  'query',
  'status',
  'country',
  'asn',
  'header:user-agent',
  'header:x-user',
  'header:x-plan',
])

export interface ReplayOptions {
  /** Replays in memory without one. */
  redis?: PrivateRedis | undefined
  facts?: ReadonlySet<Fact>
  wholeSeconds?: boolean
  /** How many lines each call gets. Defaults to all. */
  chunk?: number
}

/** Decides all lines. */
export async function replay(
  config: ConfigOptions,
  lines: LogLine[],
  { redis, facts = someFacts, wholeSeconds = false, chunk = lines.length }: ReplayOptions = {},
): Promise<Decided[]> {
  const replayer = replayerOn(
    redis,
    createLineMatcher(parseConfig(config, defaultFields), { facts }),
    {
      wholeSeconds,
    },
  )
  // No call waits for the one before.
  const calls: Promise<Decided[]>[] = []
  for (let from = 0; from < lines.length; from += chunk) {
    calls.push(replayer.decide(lines.slice(from, from + chunk)))
  }
  calls.push(replayer.finish())
  return (await Promise.all(calls)).flat()
}
