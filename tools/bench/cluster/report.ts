import { digits, table } from '../stack/report/table.ts'
import type { ClusterScale } from './measure.ts'

/** The minimum throughput of two and of three masters, relative to one. */
const TARGETS: Record<number, number> = { 2: 1.9, 3: 2.8 }

export function clusterText({ steps }: ClusterScale): string {
  const [first] = steps
  const lines = steps.map(({ masters, perSecond, commands, failed, moved }) => {
    const times = perSecond / first!.perSecond
    const target = TARGETS[masters]
    return [
      masters,
      digits(perSecond),
      `${times.toFixed(2)} ×`,
      target ? `≥ ${target} × ${times >= target ? '✓ met' : '✗ missed'}` : '–',
      commands.map(digits).join(', '),
      failed,
      moved ? `${moved.slots} in ${digits(moved.seconds)} s` : '–',
      moved ? `${moved.failed} of ${moved.decisions}` : '–',
    ]
  })
  return table(
    [
      'masters',
      'decisions/s',
      'relative to one',
      'target',
      'commands/s of each master',
      'failed',
      'slots moved before',
      'failed meanwhile',
    ],
    lines,
  )
}
