import type { Results } from '../results.ts'
import { judge, targets } from '../targets.ts'
import { digits, table } from './table.ts'

export function targetsText(results: Results): string {
  const lines = targets.map((target) => {
    const { of, title, most, unit } = target
    const [value, verdict] = judge(target, results)
    const text = (number: number) => [digits(number).replace(/^-/, '−'), unit].join(' ').trim()
    return [
      of,
      title,
      `≤ ${unit ? `${most} ${unit}` : most}`,
      value === undefined ? '–' : text(value),
      verdict === 'not met' ? '**not met**' : verdict,
    ]
  })
  return table(['', 'what', 'target', 'measured', ''], lines)
}
