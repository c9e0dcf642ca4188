import type { Results } from '../results.ts'
import { judge, targets } from '../targets.ts'
import { digits, table } from './table.ts'

/** The targets that this run measured; an empty text if there are none. */
export function targetsText(results: Results): string {
  const lines = targets.flatMap((target) => {
    const { what, most, unit } = target
    const found = judge(target, results)
    if (!found) return []
    const text = `${digits(found.value).replace(/^-/, '−')} ${unit}`.trim()
    return [[what, text, `≤ ${most} ${unit}`.trim(), found.isMet ? '✓ met' : '✗ missed']]
  })
  if (lines.length === 0) return ''
  return `### Other targets\n\n${table(['measured', 'Sluice', 'target', ''], lines)}`
}
