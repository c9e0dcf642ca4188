/**
 * The charts of the last 10 minutes: stacked bars, one for each slot of 10 s. A second chart has the refused requests alone, which are
 * too low to see beside many admitted ones.
 */
import uPlot from 'uplot'
import type { Stats } from '../../../src/features/observe/report.ts'
import { byId } from './dom.ts'
import {
  type ByOutcome,
  type ClientOutcome,
  decisionsIn,
  ofClients,
  refusals,
  refusedIn,
  SLOT_MS,
  timeline,
} from './figures.ts'
import { numberText, timeText } from './text.ts'

/** Makes a chart, and keeps it as long as it has the same series. */
function chartAt(place: HTMLElement, height: number) {
  let chart: uPlot | undefined
  /** What the chart was made for: a change needs a new one. */
  let made = ''
  let raw: number[][] = []
  new ResizeObserver(() => chart?.setSize({ width: place.clientWidth, height })).observe(place)

  return (times: number[], counts: ByOutcome[], present: ClientOutcome[]) => {
    const isDark = matchMedia('(prefers-color-scheme: dark)').matches
    const key = JSON.stringify([present, isDark])
    // Drawn from the highest to the lowest, so that each bar covers the lower part of the one before.
    raw = present.map((outcome) => counts.map((slot) => slot[outcome])).reverse()
    const stacked = present
      .map((_, n) => counts.map((slot) => total(present.slice(0, n + 1).map((one) => slot[one]))))
      .reverse()
    const data: uPlot.AlignedData = [times, ...stacked]
    if (key === made) return chart!.setData(data)
    chart?.destroy()
    const valueAt = (n: number, at: number) => raw[n]![at] ?? 0
    chart = new uPlot(optionsFor(place, height, present.toReversed(), valueAt), data, place)
    made = key
  }
}

const place = byId('chart')
const refusedPlace = byId('refused-chart')
const showAll = chartAt(place, 220)
const showRefused = chartAt(refusedPlace, 120)

export function showChart(stats: Stats, policy: string | undefined) {
  const { times, counts } = timeline(stats, policy)
  const has = (one: ClientOutcome) => counts.some((slot) => slot[one] > 0)
  const all = counts.map(decisionsIn)
  const refused = total(counts.map(refusedIn))
  showAll(
    times,
    counts,
    ofClients.filter((one) => one === 'allowed' || has(one)),
  )
  const most = numberText(Math.max(...all))
  place.setAttribute(
    'aria-label',
    `Requests in the last 10 minutes: ${numberText(total(all))}, of which ${numberText(refused)} refused. Most in 10 s: ${most}.`,
  )
  const part = byId('refused-part')
  part.hidden = refused === 0 || refused === total(all)
  if (part.hidden) return
  showRefused(times, counts, refusals.filter(has))
  const mostRefused = numberText(Math.max(...counts.map(refusedIn)))
  refusedPlace.setAttribute(
    'aria-label',
    `Refused requests in the last 10 minutes: ${numberText(refused)}. Most in 10 s: ${mostRefused}.`,
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
  valueAt: (series: number, at: number) => number,
): uPlot.Options {
  const bars = uPlot.paths.bars!({ size: [0.9, 60], align: 1 })
  const axis = { stroke: resolved('muted'), grid: { stroke: resolved('line'), width: 1 } }
  return {
    width: place.clientWidth,
    height,
    axes: [axis, { ...axis, size: 60, values: (_, ticks) => ticks.map(numberText) }],
    // The last bar begins at the last time.
    scales: {
      x: { range: (_, min, max) => [min, max + SLOT_MS / 1000] },
      y: { range: (_, __, max) => [0, Math.max(1, max * 1.05)] },
    },
    cursor: { drag: { x: false, y: false } },
    series: [
      {
        label: 'requests in 10 s',
        value: (_: uPlot, at: number | null) => (at === null ? '' : `from ${timeText(at * 1000)}`),
      },
      ...shown.map((outcome, n) => ({
        label: outcome,
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
