import { styleText } from 'node:util'
import { sectionsOf, titleOf } from './content.ts'
import type { Block, Plot, Table } from './document.ts'
import type { ReplayReport } from './types.ts'

export interface TextOptions {
  /** Columns of the terminal. Defaults to 80. */
  width?: number
  /** Adds colours for a terminal. Defaults to false. */
  color?: boolean
}

type Style = 'bold' | 'dim' | 'red'
type Paint = (style: Style, text: string) => string

/** The report for a terminal. */
export function toText(
  report: ReplayReport,
  { width = 80, color = false }: TextOptions = {},
): string {
  const paint: Paint = (style, text) =>
    color ? styleText(style, text, { validateStream: false }) : text
  const columns = Math.max(40, width)
  const sections = sectionsOf(report).map(({ title, blocks }) =>
    [paint('bold', title), ...blocks.map((block) => blockText(block, columns, paint))].join('\n'),
  )
  return `${[paint('bold', wrap(titleOf(report), columns)), ...sections].join('\n\n')}\n`
}

function blockText(block: Block, width: number, paint: Paint): string {
  switch (block.kind) {
    case 'text':
      return wrap(block.text, width, '  ')
    case 'code':
      return `\n${indent(block.text)}\n`
    case 'list':
      return block.items.map((item) => wrap(item, width, '  - ', '    ')).join('\n')
    case 'item':
      return [
        `  ${paint('red', block.title)}`,
        ...block.lines.map((line) => wrap(line, width, '    ', '      ')),
      ].join('\n')
    case 'table':
      return `${paint('dim', wrap(block.caption, width, '  '))}\n${tableText(block, width)}\n`
    case 'plot':
      return plotText(block, width, paint)
  }
}

const indent = (text: string) => text.replace(/^(?=.)/gm, '  ')

/** Breaks a text at its spaces. A word that is too long keeps a line of its own. */
function wrap(text: string, width: number, first = '', rest = first): string {
  const lines: string[] = []
  let line = first
  for (const word of text.split(' ')) {
    const isEmpty = line === first || line === rest
    if (!isEmpty && line.length + 1 + word.length > width) {
      lines.push(line)
      line = rest + word
    } else line += isEmpty ? word : ` ${word}`
  }
  return [...lines, line].join('\n')
}

/** A table with columns of equal width, or one line for each cell if the terminal is too narrow. */
function tableText({ head, rows }: Table, width: number): string {
  const widths = head.map((_, n) => Math.max(...[head, ...rows].map((cells) => cells[n]!.length)))
  if (widths.reduce((sum, one) => sum + one + 2, 0) > width) {
    const [, ...names] = head
    return rows
      .map(([name, ...cells]) =>
        [`  ${name}`, ...cells.map((cell, n) => `    ${names[n]}: ${cell}`)].join('\n'),
      )
      .join('\n')
  }
  return [head, ...rows]
    .map((cells) =>
      `  ${cells.map((cell, n) => (n === 0 ? cell.padEnd(widths[n]!) : cell.padStart(widths[n]!))).join('  ')}`.trimEnd(),
    )
    .join('\n')
}

const LEVELS = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█']

/** A line of blocks for each series. A low value above 0 has at least the lowest block. */
function plotText({ label, ends, series }: Plot, width: number, paint: Paint): string {
  const columns = Math.min(width - 4, Math.max(series[0]!.values.length, ends.join('  ').length))
  const lines = series.map(({ name, values, highest }) => {
    const heights = resampled(values, columns)
    const most = Math.max(...heights) || 1
    const line = heights.map((height) => LEVELS[Math.ceil((height / most) * 8)]).join('')
    return `  ${paint(name === 'refused' ? 'red' : 'dim', line)}\n  ${name}, highest ${highest}`
  })
  const gap = ' '.repeat(Math.max(2, columns - ends[0].length - ends[1].length))
  return [
    paint('dim', wrap(label, width, '  ')),
    ...lines,
    `  ${ends[0]}${gap}${ends[1]}`,
    '',
  ].join('\n')
}

/** The values at another number of points: the highest value of each part. */
function resampled(values: number[], points: number): number[] {
  return Array.from({ length: points }, (_, point) => {
    const from = Math.floor((point * values.length) / points)
    const to = Math.max(from + 1, Math.floor(((point + 1) * values.length) / points))
    return Math.max(...values.slice(from, to))
  })
}
