import type { Spread } from '../../statistics.ts'

/** A Markdown table. */
export const table = (head: string[], lines: (string | number)[][]): string =>
  rowsOf([head, head.map(() => '---'), ...lines])

/** A table whose columns have the same width in each line, to read it in a terminal. */
export function alignedTable(head: string[], lines: string[][]): string {
  const widths = head.map((_, n) => Math.max(...[head, ...lines].map((cells) => cells[n]!.length)))
  const pad = (cells: string[]) => cells.map((cell, n) => cell.padEnd(widths[n]!))
  return rowsOf([pad(head), widths.map((width) => '-'.repeat(width)), ...lines.map(pad)])
}

const rowsOf = (lines: (string | number)[][]) =>
  lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n')

/** Formats a number with three significant digits or less: 0.003, 1.05, 12.6, 1530. */
export function digits(value: number): string {
  if (value === 0) return '0'
  const size = Math.abs(value)
  if (size < 0.0005) return '< 0.001'
  return value.toFixed(size < 0.1 ? 3 : size < 10 ? 2 : size < 100 ? 1 : 0)
}

/** The median, and in parentheses the middle half of the rounds. */
export function withSpread(figure: Spread | undefined, text = digits): string {
  if (!figure) return '–'
  const { median, low, high } = figure
  return low === high ? text(median) : `${text(median)} (${text(low)}–${text(high)})`
}

/** A difference has a sign. */
export const signed = (ms: number) => `${ms < 0 ? '−' : '+'}${Math.abs(ms).toFixed(2)}`

export const withSign = (figure: Spread | undefined) => {
  if (!figure) return '–'
  const { median, low, high } = figure
  return low === high ? signed(median) : `${signed(median)} (${signed(low)} to ${signed(high)})`
}
