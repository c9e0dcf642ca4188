/**
 * The charts of a range: stacked bars, one for each slot. A second chart has the refused requests alone, which are
 * too low to see beside many admitted ones.
 */
import uPlot from 'uplot'
import { type Range, ranges } from '../ranges.ts'
import { byId } from './dom.ts'
import {
  type ByOutcome,
  type ClientOutcome,
  decisionsIn,
  ofClients,
  refusals,
  refusedIn,
} from './figures.ts'
import { axisText, compactText, durationText, numberText, timeText } from './text.ts'

/** Makes a chart, and keeps it as long as it has the same series. */
function chartAt(place: HTMLElement, height: number) {
  let chart: uPlot | undefined
  /** What the chart was made for: a change needs a new one. */
  let made = ''
  let raw: number[][] = []
  new ResizeObserver(() => chart?.setSize({ width: place.clientWidth, height })).observe(place)

  return (times: number[], counts: ByOutcome[], present: ClientOutcome[], range: Range) => {
    const isDark = matchMedia('(prefers-color-scheme: dark)').matches
    const key = JSON.stringify([present, isDark, range])
    // Drawn from the highest to the lowest, so that each bar covers the lower part of the one before.
    raw = present.map((outcome) => counts.map((slot) => slot[outcome])).reverse()
    const stacked = present
      .map((_, n) => counts.map((slot) => total(present.slice(0, n + 1).map((one) => slot[one]))))
      .reverse()
    const data: uPlot.AlignedData = [times, ...stacked]
    if (key === made) return chart!.setData(data)
    chart?.destroy()
    const valueAt = (n: number, at: number) => raw[n]![at] ?? 0
    chart = new uPlot(optionsFor(place, height, present.toReversed(), range, valueAt), data, place)
    made = key
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
  const refused = total(counts.map(refusedIn))
  showAll(
    times,
    counts,
    ofClients.filter((one) => one === 'allowed' || has(one)),
    range,
  )
  const most = numberText(Math.max(...all))
  place.setAttribute(
    'aria-label',
    `Requests in the last ${label}: ${numberText(total(all))}, of which ${numberText(refused)} refused. Most in ${slot}: ${most}.`,
  )
  const part = byId('refused-part')
  part.hidden = refused === 0 || refused === total(all)
  if (part.hidden) return
  showRefused(times, counts, refusals.filter(has), range)
  const mostRefused = numberText(Math.max(...counts.map(refusedIn)))
  refusedPlace.setAttribute(
    'aria-label',
    `Refused requests in the last ${label}: ${numberText(refused)}. Most in ${slot}: ${mostRefused}.`,
  )
}

const total = (numbers: number[]) => numbers.reduce((sum, one) => sum + one, 0)

const resolved = (name: string) => {
  // light-dark() is resolved only in a real property.
  place.style.color = `var(--${name})`
  const value = getComputedStyle(place).color
  place.style.color = ''
  return value
}

function optionsFor(
  place: HTMLElement,
  height: number,
  shown: ClientOutcome[],
  range: Range,
  valueAt: (series: number, at: number) => number,
): uPlot.Options {
  const { slotMs } = ranges[range]
  const bars = uPlot.paths.bars!({ size: [0.9, 60], align: 1 })
  const axis = { stroke: resolved('muted'), grid: { stroke: resolved('line'), width: 1 } }
  return {
    width: place.clientWidth,
    height,
    axes: [
      {
        ...axis,
        space: 64,
        values: (_, ticks) => {
          const days = ticks.map((at) => new Date(at * 1000).getDate())
          return ticks.map((at, n) => axisText(at * 1000, days[n] !== days[n - 1]))
        },
      },
      { ...axis, size: 52, values: (_, ticks) => ticks.map(compactText) },
    ],
    // The last bar begins at the last time.
    scales: {
      x: { range: (_, min, max) => [min, max + slotMs / 1000] },
      y: { range: (_, __, max) => [0, Math.max(1, max * 1.05)] },
    },
    cursor: { drag: { x: false, y: false } },
    series: [
      {
        label: `requests in ${durationText(slotMs)}`,
        value: (_: uPlot, at: number | null) => (at === null ? '' : `from ${timeText(at * 1000)}`),
      },
      ...shown.map((outcome, n) => ({
        label: outcome === 'allowed' ? 'admitted' : outcome,
        stroke: resolved(outcome),
        fill: resolved(outcome),
        width: 0,
        paths: bars,
        points: { show: false },
        value: (_: uPlot, __: number, ___: number, at: number | null) =>
          at === null ? '' : numberText(valueAt(n, at)),
      })),
    ],
  }
}
