/**
 * The charts of a range: stacked bars, one for each slot. A second chart has the refused requests alone, which are too low to see beside
 * many admitted ones. The colours are those of the style sheet.
 */
import { type Range, ranges } from '../ranges.ts'
import { byId, element } from './dom.ts'
import {
  type ByOutcome,
  type ClientOutcome,
  decisionsIn,
  ofClients,
  refusals,
  refusedIn,
} from './figures.ts'
import { axisText, compactText, durationText, numberText, timeText } from './text.ts'

/** The margins of a chart, px: the labels of both axes. */
const [LEFT, TOP, BOTTOM] = [52, 8, 36]
/** The least distance of two times on the axis, px. */
const TIME_GAP = 64

interface Data {
  times: number[]
  counts: ByOutcome[]
  shown: ClientOutcome[]
  range: Range
}

function draw(name: string, attributes: Record<string, string | number>, text = '') {
  const made = document.createElementNS('http://www.w3.org/2000/svg', name)
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value))
  made.textContent = text
  return made
}

/** The distance of about four grid lines: 1, 2 or 5 times a power of ten. */
function stepOf(most: number): number {
  const rough = Math.max(1, most / 4)
  const power = 10 ** Math.floor(Math.log10(rough))
  return power * [1, 2, 5, 10].find((one) => one * power >= rough)!
}

/** A chart, which fits its place. */
function chartAt(place: HTMLElement, height: number) {
  const svg = draw('svg', { height })
  const legend = element('p')
  legend.className = 'legend'
  place.append(svg, legend)
  let data: Data | undefined
  /** The slot under the pointer. */
  let pointed: number | undefined

  function show() {
    if (!data || place.clientWidth === 0) return
    const { times, counts, shown, range } = data
    const { slotMs } = ranges[range]
    const width = place.clientWidth
    const most = Math.max(1, ...counts.map((slot) => sum(shown.map((one) => slot[one]))))
    const bar = (width - LEFT) / times.length
    const bottom = height - BOTTOM
    const y = (value: number) => bottom - (value / (most * 1.05)) * (bottom - TOP)
    const parts: Element[] = []
    for (let value = 0; value <= most; value += stepOf(most)) {
      parts.push(
        draw('line', { x1: LEFT, x2: width, y1: y(value), y2: y(value) }),
        draw('text', { x: LEFT - 8, y: y(value) + 4, class: 'count' }, compactText(value)),
      )
    }
    const every = [1, 2, 3, 6, 12, 18, 30].find((one) => one * bar >= TIME_GAP) ?? 60
    let day: number | undefined
    times.forEach((time, index) => {
      const [ms, x] = [time * 1000, LEFT + index * bar]
      let low = 0
      for (const outcome of shown) {
        const count = counts[index]![outcome]
        const [top, foot] = [y(low + count), y(low)]
        low += count
        if (count === 0) continue
        const size = { x: x + 0.5, y: top, width: Math.max(1, bar - 1), height: foot - top }
        parts.push(draw('rect', { ...size, class: outcome }))
      }
      if (Math.round(ms / slotMs) % every !== 0 || x + TIME_GAP / 2 > width) return
      const isNewDay = new Date(ms).getDate() !== day
      day = new Date(ms).getDate()
      axisText(ms, isNewDay).forEach((text, line) => {
        parts.push(draw('text', { x, y: bottom + 16 + 15 * line, class: 'time' }, text))
      })
    })
    svg.setAttribute('width', String(width))
    svg.replaceChildren(...parts)
    showLegend()
  }

  function showLegend() {
    const { times, counts, shown, range } = data!
    const at = pointed === undefined ? undefined : counts[pointed]
    const title = at
      ? `from ${timeText(times[pointed!]! * 1000)}`
      : `requests in ${durationText(ranges[range].slotMs)}`
    const entries = shown.map((outcome) => {
      const entry = element('span')
      const swatch = element('i')
      swatch.className = outcome
      const name = outcome === 'allowed' ? 'admitted' : outcome
      entry.append(swatch, at ? `${name} ${numberText(at[outcome])}` : name)
      return entry
    })
    legend.replaceChildren(element('span', title), ...entries)
  }

  const point = (index: number | undefined) => {
    pointed = index
    if (data) showLegend()
  }
  svg.addEventListener('pointermove', (event) => {
    const { offsetX } = event as PointerEvent
    const index = Math.floor(((offsetX - LEFT) / (place.clientWidth - LEFT)) * data!.times.length)
    point(data!.counts[index] ? index : undefined)
  })
  svg.addEventListener('pointerleave', () => point(undefined))
  new ResizeObserver(show).observe(place)
  return (next: Data) => {
    data = next
    show()
  }
}

const place = byId('chart')
const refusedPlace = byId('refused-chart')
const showAll = chartAt(place, 220)
const showRefused = chartAt(refusedPlace, 120)

export function showChart(times: number[], counts: ByOutcome[], range: Range) {
  const { label, slotMs } = ranges[range]
  const slot = durationText(slotMs)
  const has = (one: ClientOutcome) => counts.some((slot) => slot[one] > 0)
  const all = counts.map(decisionsIn)
  const refused = sum(counts.map(refusedIn))
  showAll({
    ...{ times, counts, range },
    shown: ofClients.filter((one) => one === 'allowed' || has(one)),
  })
  place.setAttribute(
    'aria-label',
    `Requests in the last ${label}: ${numberText(sum(all))}, of which ${numberText(refused)} refused. Most in ${slot}: ${numberText(Math.max(...all))}.`,
  )
  const part = byId('refused-part')
  part.hidden = refused === 0 || refused === sum(all)
  if (part.hidden) return
  showRefused({ times, counts, range, shown: refusals.filter(has) })
  const mostRefused = numberText(Math.max(...counts.map(refusedIn)))
  refusedPlace.setAttribute(
    'aria-label',
    `Refused requests in the last ${label}: ${numberText(refused)}. Most in ${slot}: ${mostRefused}.`,
  )
}

const sum = (numbers: number[]) => numbers.reduce((all, one) => all + one, 0)
