import { card, round, WIDTH } from '../svg.ts'
import type { Played } from './play.ts'
import type { Phase } from './traffic.ts'

export interface PictureRow {
  title: string
  /** The settings, in a few words. */
  subtitle: string
  played: Played
  /** The maximum number of admitted requests in any window. */
  most: number
}

export interface Picture {
  limits: PictureRow[]
  phases: Phase[]
  lengthMs: number
  /** The limit. */
  full: number
}

const LEFT = 178
const RIGHT = 136
const TOP = 52
const ROW = 92
const FOOT = 66
/** Heights above and below the line of a row: a full quota, an admitted request, a refused request. */
const QUOTA = 52
const ADMITTED = 26
const REFUSED = 12

const STYLE = `
.most { font-size: 26px; font-weight: 600; text-anchor: end } .middle { text-anchor: middle }
.band { fill: #f3f5f8 } .grid { stroke: #c4ccd4; stroke-dasharray: 2 4 }
.base { stroke: #818b98 } .quota { fill: #c8dcf6 }
.admitted { stroke: #067a53; stroke-width: 1.7 } .refused { stroke: #d1481f; stroke-width: 1.7 }`.trim()
const DARK = `
.band { fill: #161c24 } .grid { stroke: #3d444d } .base { stroke: #848d97 } .quota { fill: #1f3a5f }
.admitted { stroke: #4cd39b } .refused { stroke: #ff8f6b }`.trim()

export function draw({ limits, phases, lengthMs, full }: Picture): string {
  const bottom = TOP + limits.length * ROW
  const height = bottom + FOOT
  const x = (ms: number) => round(LEFT + (ms / lengthMs) * (WIDTH - LEFT - RIGHT))

  const bands = phases.map(({ name, from, to }, index) => {
    const [left, right] = [x(from * 1000), x(to * 1000)]
    const band = `<rect class="band" x="${left}" y="16" width="${round(right - left)}" height="${bottom - 16}"/>`
    const label = `<text class="middle" x="${round((left + right) / 2)}" y="36">${name}</text>`
    return index % 2 === 0 ? band + label : label
  })
  const ticks = Array.from({ length: lengthMs / 10_000 + 1 }, (_, index) => {
    const at = x(index * 10_000)
    const line = `<path class="grid" d="M${at} ${TOP - 6}V${bottom}"/>`
    return `${line}<text class="muted middle" x="${at}" y="${bottom + 18}">${index * 10} s</text>`
  })
  const lines = limits.map((row, index) => drawRow(row, TOP + index * ROW, x, lengthMs, full))

  const most = limits.map((row) => `${row.title} ${row.most}`).join(', ')
  return card({
    title: 'The same traffic under five algorithms',
    description: `Admitted and refused requests of one client over a minute. Most admitted in any ten seconds: ${most}.`,
    height,
    style: STYLE,
    dark: DARK,
    body: [
      ...bands,
      `<text class="end" x="${WIDTH - 20}" y="36">most admitted</text>`,
      ...ticks,
      ...lines,
      legend(height - 20),
    ],
  })
}

function drawRow(
  { title, subtitle, played, most }: PictureRow,
  top: number,
  x: (ms: number) => number,
  end: number,
  full: number,
): string {
  const line = top + QUOTA + 12
  const total = played.admitted.length + played.refused.length
  const marks = (times: number[], height: number) =>
    times.map((at) => `M${x(at)} ${line}v${height}`).join('')
  const steps = played.remaining
    .map(({ at, units }) => `H${x(at)}V${round(line - (units / full) * QUOTA)}`)
    .join('')
  return `<g>
<text class="title" x="20" y="${line - 22}">${title}</text>
<text class="muted" x="20" y="${line - 3}">${subtitle}</text>
<path class="quota" d="M${x(0)} ${line}${steps}H${x(end)}V${line}z"/>
<path class="admitted" d="${marks(played.admitted, -ADMITTED)}"/>
<path class="refused" d="${marks(played.refused, REFUSED)}"/>
<path class="base" d="M${x(0)} ${line}H${x(end)}"/>
<text class="most" x="${WIDTH - 20}" y="${line - 22}">${most}</text>
<text class="muted end" x="${WIDTH - 20}" y="${line - 3}">in any 10 s</text>
<text class="muted end" x="${WIDTH - 20}" y="${line + 14}">${played.admitted.length} of ${total} pass</text>
</g>`
}

function legend(y: number): string {
  return `<path class="admitted" d="M${LEFT} ${y}v-14M${LEFT + 4} ${y}v-14M${LEFT + 8} ${y}v-14"/>
<text x="${LEFT + 18}" y="${y - 2}">admitted</text>
<path class="refused" d="M${LEFT + 110} ${y - 2}v-10M${LEFT + 114} ${y - 2}v-10M${LEFT + 118} ${y - 2}v-10"/>
<text x="${LEFT + 128}" y="${y - 2}">refused</text>
<path class="quota" d="M${LEFT + 212} ${y}v-7h8v-7h10v14z"/>
<text x="${LEFT + 240}" y="${y - 2}">remaining quota</text>`
}
