import { type Soon, whenKnown } from '../../../src/core/base/when-known.ts'
import type { Config } from '../../../src/core/config/parse.ts'
import { featuresOf, stagesOf } from '../../../src/core/feature.ts'
import { compileMatcher, type Matched } from '../../../src/core/program/match.ts'
import { defaults } from '../../../src/features/defaults.ts'
import type { LogLine } from '../line.ts'
import { BySender } from '../sender.ts'
import { lineViews } from './line-view.ts'
import { type Known, type Replayable, readsOnlyAddress, replayable } from './replayable.ts'

/** The deployed matcher for lines of a log, with the part of the configuration that the log can replay. */
export interface LineMatcher extends Replayable {
  /**
   * Makes a function that finds which policies apply to a line, with the partition key and the cost. Known at once, unless the path has
   * several readings.
   * @param use makes the result of that. Lines that are equal to the configuration share a result
   */
  matching<Result>(use: (matched: Matched) => Soon<Result>): (line: LogLine) => Soon<Result>
}

export function createLineMatcher(config: Config, known: Known): LineMatcher {
  const found = replayable(config, known)
  const viewOf = lineViews(config)
  let now = 0
  const log = () => {} // only keys that a log cannot replay have events
  const stages = stagesOf({ config: found.config, log }, featuresOf(found.config, defaults()))
  const match = compileMatcher(found.config, log, stages, undefined, () => now)
  return {
    ...found,
    matching(use) {
      if (readsOnlyAddress(found.config)) {
        const find = ({ ip }: LogLine) =>
          whenKnown(match(viewOf({ time: 0, method: 'GET', target: '/', ip })), use)
        const results = new BySender<ReturnType<typeof find>>()
        return (line) => {
          const known = results.get(line)
          if (known !== undefined) return known
          const result = find(line)
          results.set(line, result)
          return result
        }
      }
      return (line) => {
        now = line.time
        return whenKnown(match(viewOf(line)), use)
      }
    },
  }
}
