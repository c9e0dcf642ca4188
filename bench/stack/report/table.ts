import type { Spread } from '../../statistics.ts'

/** A Markdown table. */
export function table(head: string[], lines: (string | number)[][]): string {
  return [head, head.map(() => '---'), ...lines]
    .map((cells) => `| ${cells.join(' | ')} |`)
    .join('\n')
}

/** Formats a number with three significant digits or less: 0.003, 1.05, 12.6, 1530. */
export function digits(value: number): string {
  if (value === 0) return '0'
  const size = Math.abs(value)
  if (size < 0.0005) return '< 0.001'
  return value.toFixed(size < 0.1 ? 3 : size < 10 ? 2 : size < 100 ? 1 : 0)
}

/** The median, and in parentheses the lowest and the highest round. */
export function withSpread(figure: Spread | undefined, text = digits): string {
  if (!figure) return '–'
  const { median, min, max } = figure
  return min === max ? text(median) : `${text(median)} (${text(min)}–${text(max)})`
}

/** A difference has a sign. */
export const signed = (ms: number) => `${ms < 0 ? '−' : '+'}${Math.abs(ms).toFixed(2)}`

export const withSign = (figure: Spread | undefined) => {
  if (!figure) return '–'
  const { median, min, max } = figure
  return min === max ? signed(median) : `${signed(median)} (${signed(min)} to ${signed(max)})`
}
