/** A report as sections, which the terminal and the page draw in their own way. */

export interface Section {
  title: string
  blocks: Block[]
}

export type Block =
  | { kind: 'text'; text: string }
  | { kind: 'code'; text: string }
  | { kind: 'list'; items: string[] }
  /** One client, for instance: a heading with lines below it. */
  | { kind: 'item'; title: string; lines: string[] }
  | ({ kind: 'table' } & Table)
  | ({ kind: 'plot' } & Plot)

export interface Table {
  caption: string
  head: string[]
  /** The first cell names the row. */
  rows: string[][]
}

export interface Plot {
  /** The plot in words. */
  label: string
  /** The labels at the begin and the end of the horizontal axis. */
  ends: [first: string, last: string]
  /** Names of the values, and one list for each. Each list is drawn in front of the one before, and has the same length. */
  series: { name: Series; values: number[] /** The highest value as text. */; highest: string }[]
  /** The same numbers. */
  table: Table
}

export type Series = 'requests' | 'may be refused' | 'refused' | 'would be refused' | 'keys'
