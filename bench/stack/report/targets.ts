import type { Results } from '../results.ts'
import { judge, targets } from '../targets.ts'
import { digits, table } from './table.ts'

/** @param all include targets that this run did not measure */
export function targetsText(results: Results, all = true): string {
  const lines = targets.flatMap((target) => {
    const { of, title, most, unit } = target
    const [value, verdict] = judge(target, results)
    if (value === undefined && !all) return []
    const text = (number: number) => [digits(number).replace(/^-/, '−'), unit].join(' ').trim()
    return [
      [
        of,
        title,
        `≤ ${unit ? `${most} ${unit}` : most}`,
        value === undefined ? '–' : text(value),
        verdict === 'not met' ? '**not met**' : verdict,
      ],
    ]
  })
  return table(['workload', 'metric', 'target', 'measured', 'result'], lines)
}
