import type { Results } from '../results.ts'
import { workloads } from '../workloads.ts'
import { isolatesText } from './isolates.ts'
import { legsText } from './legs.ts'
import { redisText } from './redis.ts'
import { shieldText } from './shield.ts'
import { startText } from './start.ts'
import { targetsText } from './targets.ts'
import { verdictText } from './verdict.ts'
import { WORKLOAD_LEGEND, workloadTable } from './workload.ts'

/** The report of a run: the verdict, then the details. */
export function reportOf(about: string, results: Results): string {
  const { shield, isolates, redis } = results
  const tables = workloads.flatMap((workload) => {
    const samples = results.workloads[workload.id]
    return samples ? [workloadTable(workload, samples)] : []
  })
  return [
    verdictText(results),
    about,
    targetsText(results),
    ...(tables.length > 0 ? [WORKLOAD_LEGEND, ...tables] : []),
    ...(redis ? [redisText(redis)] : []),
    ...(results.sizes || results.coldStarts ? [startText(results)] : []),
    ...(results.exactness || results.clients || results.soak ? [legsText(results)] : []),
    ...(isolates ? [isolatesText(isolates)] : []),
    ...(shield ? [shieldText(shield)] : []),
  ]
    .filter(Boolean)
    .join('\n\n')
}
