import { LIMIT, type Overload, scenarios } from '../legs/overload.ts'
import { table } from './table.ts'

/** One client floods a cold isolate with default settings. */
export function overloadText(results: Overload[]): string {
  const lines = results.map(
    ({ scenario, connections, passed, passedAfterRefusal, flood, others }) => [
      scenarios[scenario]!.title,
      connections,
      passed,
      passedAfterRefusal,
      flood.refused,
      flood.failed,
      others.length === 0
        ? '–'
        : others.map((one) => `${one.passed} / ${one.refused} / ${one.failed}`).join(', '),
      others.length === 0 ? '–' : others.map((one) => one.fallbacks).join(', '),
      others.length === 0
        ? '–'
        : `${(Math.max(...others.map((one) => one.longestFallbackMs)) / 1000).toFixed(1)} s`,
    ],
  )
  const head = [
    'scenario',
    'connections',
    `admitted (limit ${LIMIT})`,
    'by a fallback after a refusal by Redis',
    'refused',
    'failed',
    'other clients: admitted / refused / failed',
    'other clients: by a fallback',
    'longest time without Redis',
  ]
  return `### One client floods a cold isolate, default settings\n\n${table(head, lines)}`
}
