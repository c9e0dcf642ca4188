/** Suggests a limit: the peaks of all keys, and the smallest limit that refuses few of them. */

import { spanText } from '../../../src/core/base/duration.ts'
import { canonical } from '../../../src/core/base/part.ts'
import type { ConfigOptions, PolicyOptions } from '../../../src/core/config/options.ts'
import { type Policy, parseConfig } from '../../../src/core/config/parse.ts'
import { labelOf } from '../../../src/core/program/key.ts'
import { defaultFields } from '../../../src/features/defaults.ts'
import { createLineMatcher } from '../decide/matcher.ts'
import type { LogFacts } from '../decide/replayer.ts'
import type { LogLine } from '../line.ts'
import type { Suggestion } from '../report/types.ts'
import { above, distributionOf, gapFor, limitInside } from './distribution.ts'
import { PeakCounter } from './peak-counter.ts'
import { policyText, shadowPolicy } from './policy-text.ts'

/** 1 s, 10 s, 1 min, 1 h and 1 d. */
const WINDOWS_MS = [1_000, 10_000, 60_000, 3_600_000, 86_400_000]
const DEFAULT_WINDOW_MS = 60_000
const DEFAULT_SHARE = 0.001
/** The different peaks that a report lists, and the clients. */
const HIGHEST = 4
const LISTED = 5

/** The policy of `--suggest per-ip` without a configuration. */
export const PER_IP: PolicyOptions = { name: 'per-ip', limit: 1, window: '1m' }

export interface SuggestOptions {
  /** A policy of the configuration, or `per-ip`. */
  policy: string
  /** The share of the keys that the limit may refuse, 0 to 1. Defaults to 0.001; with few keys a wide gap between peaks may refuse more. */
  refuse?: number | undefined
}

export interface Suggester {
  /** Counts requests in the order of their times. */
  add(lines: readonly LogLine[]): Promise<void>
  /** `undefined` if the policy applied to no request. */
  result(): Suggestion | undefined
}

/**
 * @param written the configuration as its file exports it; it parses
 * @throws Error if there is no such policy, or if the log cannot tell what it needs
 */
export function createSuggester(
  written: ConfigOptions,
  log: LogFacts,
  { policy: name, refuse }: SuggestOptions,
): Suggester {
  const others = written.policies ?? []
  const names = others.map((one) => one.name)
  const original = others.find((one) => one.name === name) ?? (name === 'per-ip' && PER_IP)
  if (!original) {
    throw new Error(
      `--suggest: expected one of ${[...new Set([...names, 'per-ip'])].join(', ')}; got ${JSON.stringify(name)}`,
    )
  }
  const { windowMs: ownMs } = windowOf(written, original)
  const counted = shadowPolicy(original, { limit: 1, window: spanText(ownMs) }, [])
  const matcher = createLineMatcher(
    parseConfig({ ...written, policies: [counted] }, defaultFields),
    log,
  )
  const [policy] = matcher.config.policies
  if (!policy) throw new Error(`--suggest ${name}: ${matcher.notReplayed[0]!.reason}`)
  const peaks = new PeakCounter([...new Set([...WINDOWS_MS, ownMs])].sort((a, b) => a - b))

  const chargesOf = matcher.matching(({ denied, policies }) =>
    (denied ? [] : policies)
      .filter(({ cost }) => cost > 0)
      .map(({ partitionKey, cost }) => ({ key: canonical(partitionKey), cost })),
  )

  function count({ time, status }: LogLine, { key, cost }: { key: string; cost: number }): void {
    // Of all ways to spread the requests of a second, all at once has the highest peaks.
    const at = log.wholeSeconds ? time - (time % 1_000) : time
    peaks.charge(key, at, cost, isCounted(policy!, status) ? cost : 0)
  }

  return {
    async add(lines) {
      for (const line of lines) {
        const charges = chargesOf(line)
        for (const charge of charges instanceof Promise ? await charges : charges)
          count(line, charge)
      }
    },
    result() {
      if (peaks.keys === 0) return undefined
      const sorted = peaks.sorted(ownMs)
      const share = refuse ?? DEFAULT_SHARE
      const gap = gapFor(sorted, share, refuse === undefined)
      const limit = Math.max(limitInside(gap), largestCost(policy))
      const quota = { limit, window: spanText(ownMs) }
      return {
        policy: name,
        countedBy: policy.key.map(labelOf).join(' + '),
        keys: peaks.keys,
        peaks: peaks.windows.map((windowMs) => distributionOf(windowMs, peaks.sorted(windowMs))),
        refuse: share,
        suggested: { limit, windowMs: ownMs, refusedKeys: above(sorted, limit) },
        gap: { ...gap, highest: [...new Set(sorted)].slice(-HIGHEST) },
        refused: peaks
          .above(ownMs, limit)
          .slice(0, LISTED)
          .map(({ key, peak }) => ({
            client: clientOf(key),
            peak,
          })),
        text: policyText(shadowPolicy(original, quota, names)),
      }
    },
  }
}

/** The window of a policy. A calendar window has days, and slots have no window that a limit could use. */
function windowOf(written: ConfigOptions, policy: PolicyOptions): { windowMs: number } {
  const [parsed] = parseConfig({ ...written, policies: [policy] }, defaultFields).policies
  if (parsed!.calendar) return { windowMs: 86_400_000 }
  if (parsed!.algorithm === 'concurrency') return { windowMs: DEFAULT_WINDOW_MS }
  return parsed!
}

/** True if the charge stays after a response with this status. */
const isCounted = ({ countOnly }: Policy, status: number | undefined) =>
  !countOnly ||
  status === undefined ||
  countOnly.some(([low, high]) => low <= status && status <= high)

/** A smaller limit would never admit the most expensive request, which the linter reports. */
const largestCost = ({ cost }: Policy) =>
  Math.max(1, cost.otherwise, ...cost.rules.map((rule) => rule.cost))

/** The values of a partition key, as `canonical` writes it. */
const clientOf = (key: string) =>
  (JSON.parse(key) as [string, string | null][]).map(([, value]) => value ?? 'none').join(', ')
