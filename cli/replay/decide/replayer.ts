import type { Config } from '../../../src/core/config/parse.ts'
import type { LogLine } from '../line.ts'
import type { Asked, Engine } from './engine.ts'
import { createLineMatcher, type LineMatcher } from './matcher.ts'
import { createMemoryEngine, fitsMemory } from './memory.ts'
import { openPrivateRedis, type PrivateRedis } from './private-redis.ts'
import { createRedisEngine } from './redis.ts'
import type { Known, Replayable } from './replayable.ts'
import { exactTimes, type Timed, wholeSeconds } from './seconds.ts'
import type { Decided } from './verdict.ts'

/** The facts of a log that a configuration needs. */
export interface LogFacts extends Known {
  /** True if all stamps of the log are whole seconds. */
  wholeSeconds: boolean
}

/** Decides the lines of a log by a configuration. */
export interface Replayer extends Pick<Replayable, 'notReplayed' | 'notes'> {
  /** `memory`: a fast path for configurations that it can serve. `redis`: the deployed script in a private Redis. */
  engine: 'memory' | 'redis'
  /**
   * Decides lines in the order of their times. With whole seconds it keeps the lines of the last second, because the second may continue
   * in the next call; a later call or `finish` returns them. A call need not wait for the result of the one before.
   * @throws {Error} if Redis ends
   */
  decide(lines: LogLine[]): Promise<Decided[]>
  /** Decides the lines that were kept. */
  finish(): Promise<Decided[]>
  /** Stops the private Redis. */
  close(): Promise<void>
}

export interface ReplayerOptions {
  /** Uses Redis even if the memory can serve the configuration. Defaults to false. */
  exact?: boolean
}

/** @throws {Error} if Redis is needed and there is none */
export async function createReplayer(
  config: Config,
  log: LogFacts,
  { exact = false }: ReplayerOptions = {},
): Promise<Replayer> {
  const matcher = createLineMatcher(config, log)
  if (!exact && fitsMemory(matcher.config)) return replayerOn(undefined, matcher, log)
  const redis = await openPrivateRedis()
  return { ...replayerOn(redis, matcher, log), close: () => redis.stop() }
}

/** A replayer on a Redis that the caller stops, or in memory without one. */
export const replayerOn = (
  redis: PrivateRedis | undefined,
  matcher: LineMatcher,
  log: Pick<LogFacts, 'wholeSeconds'>,
): Replayer =>
  redis
    ? {
        ...replayerWith(createRedisEngine(redis, matcher.config, log), matcher, log),
        engine: 'redis',
      }
    : { ...replayerWith(createMemoryEngine(log), matcher, log), engine: 'memory' }

function replayerWith<Rules>(
  engine: Engine<Rules>,
  { notReplayed, notes, matching }: LineMatcher,
  log: Pick<LogFacts, 'wholeSeconds'>,
) {
  const rulesOf = matching(engine.rulesOf)
  const seconds = log.wholeSeconds ? wholeSeconds() : exactTimes()

  let before: Promise<unknown> = Promise.resolve()

  /** Passes lines to the engine after those of the call before, whose results may still be awaited. */
  async function decide(timed: Timed[]): Promise<Decided[]> {
    const started = before.then(async () => ({ decided: engine.decide(await ask(timed)) }))
    before = started
    return (await started).decided
  }

  async function ask(timed: Timed[]): Promise<Asked<Rules>[]> {
    const asked: Asked<Rules>[] = []
    for (const { line, spread, burst } of timed) {
      const soon = rulesOf(line)
      // An `await` for each line would take longer than the decision.
      const rules = soon instanceof Promise ? await soon : soon
      asked.push({ line, spread, burst, rules })
    }
    return asked
  }

  return {
    notReplayed,
    notes,
    decide: (lines: LogLine[]) => decide(seconds.add(lines)),
    finish: () => decide(seconds.rest()),
    close: async () => {},
  }
}
