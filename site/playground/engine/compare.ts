/** The same traffic under each algorithm. */
import { ConfigError } from '../../../src/core/base/errors.ts'
import type { PolicyOptions } from '../../../src/core/config/options.ts'
import { problemsOf } from '../../../src/lint/lint.ts'
import { firstOf, type Setup, withOnly } from './door.ts'
import { type Summary, summaryOf } from './figures.ts'
import { simulate } from './simulate.ts'
import type { Arrival } from './traffic.ts'

/** One algorithm: what it did, or why the policy cannot have it. */
export type Compared = { title: string } & (
  | { summary: Summary; times: [at: number, isAdmitted: boolean][]; problem?: undefined }
  | { problem: string }
)

const variants: { title: string; fields: Partial<PolicyOptions> }[] = [
  { title: 'fixed-window', fields: { algorithm: 'fixed-window', align: 'clock' } },
  { title: 'sliding-window', fields: { algorithm: 'sliding-window' } },
  { title: 'sliding-log', fields: { algorithm: 'sliding-log' } },
  { title: 'token-bucket', fields: { algorithm: 'token-bucket' } },
  { title: 'gcra', fields: { algorithm: 'gcra' } },
]

/** Runs the traffic with the first policy alone, once with each algorithm. */
export async function compare(
  setup: Setup,
  windowMs: number,
  arrivals: readonly Arrival[],
  lengthMs: number,
): Promise<Compared[]> {
  const { options: policy } = firstOf(setup)
  if (!policy || policy.algorithm === 'concurrency') return []
  const { burst, align: _, ...own } = policy
  const compared: Compared[] = []
  for (const { title, fields } of variants) {
    const hasBurst = burst !== undefined && fields.algorithm === policy.algorithm
    const one: PolicyOptions = { ...own, ...fields, ...(hasBurst && { burst }) }
    try {
      const run = await simulate(withOnly(setup, one), arrivals)
      compared.push({
        title: hasBurst ? `${title}, burst ${burst}` : title,
        summary: summaryOf(run, windowMs, lengthMs),
        times: run.served.map(({ at, decision }) => [at, decision.allowed]),
      })
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      const [problem] = problemsOf(error)
      compared.push({ title, problem: `${problem!.path}: ${problem!.message}` })
    }
  }
  return compared
}
