import type { Results } from '../results.ts'
import { workloads } from '../workloads.ts'
import { isolatesText } from './isolates.ts'
import { legsText } from './legs.ts'
import { redisText } from './redis.ts'
import { shieldText } from './shield.ts'
import { startText } from './start.ts'
import { targetsText } from './targets.ts'
import { othersText, verdictText } from './verdict.ts'
import { WORKLOAD_LEGEND, workloadTable } from './workload.ts'

export interface Report {
  /** For docs/reference/benchmarks.md. */
  verdict: string
  /** For tools/bench/RESULTS.md. */
  details: string
}

const joined = (parts: string[]) => parts.filter(Boolean).join('\n\n')

/** The verdict of runs, the newest first. */
export const verdictOf = (abouts: string[], runs: [Results, ...Results[]]) =>
  joined([verdictText(runs), [...new Set(abouts)].join(' ')])

/** The report of a run. */
export function reportOf(about: string, results: Results): Report {
  const { shield, isolates, redis } = results
  const tables = workloads.flatMap((workload) => {
    const samples = results.workloads[workload.id]
    return samples ? [workloadTable(workload, samples)] : []
  })
  const details = [
    othersText(results),
    targetsText(results),
    ...(tables.length > 0 ? [WORKLOAD_LEGEND, ...tables] : []),
    ...(redis ? [redisText(redis)] : []),
    ...(results.sizes || results.coldStarts ? [startText(results)] : []),
    ...(results.exactness || results.clients || results.soak ? [legsText(results)] : []),
    ...(isolates ? [isolatesText(isolates)] : []),
    ...(shield ? [shieldText(shield)] : []),
  ]
  return { verdict: verdictOf([about], [results]), details: joined(details) }
}
