import { asText, card, round, WIDTH } from '../../svg.ts'
import { digits } from './table.ts'

export interface Bar {
  label: string
  by: 'floor' | 'ours' | 'peer'
  value: number
  /** The middle half of the rounds. */
  low: number
  high: number
}

export interface Panel {
  title: string
  subtitle: string
  bars: Bar[]
}

const PANEL = WIDTH / 2
const TOP = 24
const HEAD = 50
const ROW = 26
const GAP = 26
/** Width of the labels, and of the numbers after the bars. */
const LABEL = 206
const NUMBER = 64

const STYLE = `
.ours { fill: #067a53 } .peer { fill: #7d9cc9 } .floor { fill: #afb8c1 }
.spread { stroke: #1f2328; stroke-width: 1.2 } text.ours { font-weight: 600 }
text.peer, text.floor { fill: #1f2328 }`.trim()
const DARK = `
text.peer, text.floor { fill: #f0f6fc }
.ours { fill: #4cd39b } .peer { fill: #4a6fa5 } .floor { fill: #656c76 } .spread { stroke: #f0f6fc }`.trim()

/** Draws panels of bars, two in each row. */
export function draw(title: string, panels: Panel[]): string {
  const rows: Panel[][] = []
  for (let at = 0; at < panels.length; at += 2) rows.push(panels.slice(at, at + 2))
  let y = TOP
  const drawn = rows.map((row) => {
    const text = row.map((panel, column) => drawPanel(panel, column * PANEL + 20, y))
    y += HEAD + Math.max(...row.map(({ bars }) => bars.length)) * ROW + GAP
    return text.join('\n')
  })
  const sentences = panels.map(({ title, bars }) => {
    const figures = bars.map(({ label, value }) => `${label} ${digits(value)}`)
    return `${title}: ${figures.join(', ')}.`
  })
  const description = sentences.join(' ')
  return card({ title, description, height: y, style: STYLE, dark: DARK, body: drawn })
}

function drawPanel({ title, subtitle, bars }: Panel, left: number, top: number): string {
  const room = PANEL - 40 - LABEL - NUMBER
  const most = Math.max(...bars.map(({ high }) => high), Number.MIN_VALUE)
  const length = (value: number) => round((Math.max(0, value) / most) * room)
  const start = left + LABEL
  const lines = bars.map(({ label, by, value, low, high }, index) => {
    const y = top + HEAD + index * ROW
    const middle = y + 9
    const spread =
      high > low
        ? `<path class="spread" d="M${start + length(low)} ${middle}H${start + length(high)}"/>`
        : ''
    return `<text class="${by} end" x="${start - 8}" y="${y + 13}">${asText(label)}</text>
<rect class="${by}" x="${start}" y="${y}" width="${Math.max(1, length(value))}" height="18" rx="2"/>${spread}
<text class="muted" x="${start + length(high) + 8}" y="${y + 13}">${digits(value)}</text>`
  })
  return `<g>
<text class="title" x="${left}" y="${top + 12}">${asText(title)}</text>
<text class="muted" x="${left}" y="${top + 31}">${asText(subtitle)}</text>
${lines.join('\n')}
</g>`
}
