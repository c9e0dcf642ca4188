/** Checks the expectations of a configuration on the requests of a log that it admits. */
import { ConfigError } from '../../../src/core/base/errors.ts'
import type { Part } from '../../../src/core/base/part.ts'
import type { ConfigOptions } from '../../../src/core/config/options.ts'
import { parseConfig } from '../../../src/core/config/parse.ts'
import { defaultFields } from '../../../src/features/defaults.ts'
import { expectationsOf } from '../../../src/lint/expect/options.ts'
import { titleOf } from '../../../src/lint/expect/text.ts'
import { createLineMatcher } from '../decide/matcher.ts'
import type { LogFacts } from '../decide/replayer.ts'
import type { Decided } from '../decide/verdict.ts'
import type { ExpectationReport } from '../report/types.ts'
import { MostWithin } from './most.ts'

export interface ExpectationCounter {
  /** Counts decided requests in the order of their times. */
  add(decided: readonly Decided[]): Promise<void>
  /** One report for each expectation. */
  result(): ExpectationReport[]
}

/** @throws {ConfigError} if an expectation is invalid */
export function createExpectationCounter(
  written: ConfigOptions,
  log: LogFacts,
): ExpectationCounter {
  const { output, problems } = expectationsOf(written)
  if (problems) throw new ConfigError(problems)
  const list = [written.expect ?? []].flat()
  const counters = output.map((expectation, index) => {
    const { request, per } = list[index]!
    const { use, apiKeys, caseSensitivePaths } = written
    const one = { name: 'expectation', limit: 1, window: '1m', match: request, key: per } as const
    const options = { use, apiKeys, caseSensitivePaths, policies: [one] } as ConfigOptions
    return createCounter(
      createLineMatcher(parseConfig(options, defaultFields), log),
      expectation.inMs,
      { title: titleOf(expectation), atMost: expectation.atMost },
    )
  })
  return {
    async add(decided) {
      for (const counter of counters) await counter.add(decided)
    },
    result: () => counters.map((counter) => counter.result()),
  }
}

function createCounter(
  { matching, notReplayed }: ReturnType<typeof createLineMatcher>,
  inMs: number,
  named: { title: string; atMost: number },
) {
  const { title, atMost } = named
  const [spread, burst] = [new MostWithin(inMs), new MostWithin(inMs)]
  const clientsOf = matching(({ policies }) =>
    policies.map(({ partitionKey }) => clientText(partitionKey)),
  )
  return {
    async add(decided: readonly Decided[]) {
      if (notReplayed.length > 0) return
      for (const one of decided) {
        if (!one.spread.allowed && !one.burst.allowed) continue
        const soon = clientsOf(one.line)
        // An `await` for each line would take longer than the count.
        for (const client of soon instanceof Promise ? await soon : soon) {
          if (one.spread.allowed) spread.add(client, one.line.time)
          if (one.burst.allowed) burst.add(client, one.line.time)
        }
      }
    },
    result(): ExpectationReport {
      const [low, high] = [spread.most, burst.most].sort((a, b) => a.requests - b.requests)
      return {
        ...{ title, atMost, inMs },
        most: { low: low!.requests, high: high!.requests },
        ...(high!.client !== undefined && { client: high!.client, from: high!.from! }),
        notReplayed: notReplayed.map(({ reason }) => reason),
      }
    },
  }
}

/** `203.0.113.7`, or `DE, 64500`. A part without a value is `none`. */
const clientText = (parts: Part[]) => parts.map(([, value]) => value ?? 'none').join(', ')
