/** The chart of the requests in the last 10 minutes: stacked bars, one for each slot of 10 s. */
import uPlot from 'uplot'
import { type DecisionOutcome, outcomes } from '../../../src/features/observe/event.ts'
import type { Stats } from '../../../src/features/observe/report.ts'
import { byId } from './dom.ts'
import { decisionsIn, refusedIn, SLOT_MS, timeline } from './figures.ts'
import { numberText } from './text.ts'

const HEIGHT = 220
const place = byId('chart')
let chart: uPlot | undefined
/** What the chart was made for: a change needs a new one. */
let made = ''
let raw: number[][] = []

const resolved = (name: string) => {
  // light-dark() is resolved only in a real property.
  place.style.color = `var(--${name})`
  const value = getComputedStyle(place).color
  place.style.color = ''
  return value
}

export function showChart(stats: Stats, policy: string | undefined) {
  const { times, counts } = timeline(stats, policy)
  const present = outcomes.filter(
    (one) => one === 'allowed' || counts.some((slot) => slot[one] > 0),
  )
  const isDark = matchMedia('(prefers-color-scheme: dark)').matches
  const key = JSON.stringify([present, isDark])
  // Drawn from the highest to the lowest, so that each bar covers the lower part of the one before.
  raw = present.map((outcome) => counts.map((slot) => slot[outcome])).reverse()
  const stacked = present
    .map((_, n) => counts.map((slot) => total(present.slice(0, n + 1).map((one) => slot[one]))))
    .reverse()
  const data: uPlot.AlignedData = [times, ...stacked]
  if (key === made) chart!.setData(data)
  else {
    chart?.destroy()
    chart = new uPlot(options(present.toReversed()), data, place)
    made = key
  }
  const all = counts.map(decisionsIn)
  place.setAttribute(
    'aria-label',
    `Requests in the last 10 minutes: ${numberText(total(all))}, of which ${numberText(total(counts.map(refusedIn)))} refused. Most in 10 s: ${numberText(Math.max(...all))}.`,
  )
}

const total = (numbers: number[]) => numbers.reduce((sum, one) => sum + one, 0)

function options(shown: DecisionOutcome[]): uPlot.Options {
  const bars = uPlot.paths.bars!({ size: [0.9, 60], align: 1 })
  const axis = { stroke: resolved('muted'), grid: { stroke: resolved('line'), width: 1 } }
  return {
    width: place.clientWidth,
    height: HEIGHT,
    axes: [axis, { ...axis, size: 60, values: (_, ticks) => ticks.map(numberText) }],
    // The last bar begins at the last time.
    scales: {
      x: { range: (_, min, max) => [min, max + SLOT_MS / 1000] },
      y: { range: (_, __, max) => [0, Math.max(1, max * 1.05)] },
    },
    cursor: { drag: { x: false, y: false } },
    series: [
      { label: 'time' },
      ...shown.map((outcome, n) => ({
        label: outcome,
        stroke: resolved(outcome),
        fill: resolved(outcome),
        width: 0,
        paths: bars,
        points: { show: false },
        value: (_: uPlot, __: number, ___: number, at: number | null) =>
          at === null ? '–' : numberText(raw[n]![at] ?? 0),
      })),
    ],
  }
}

new ResizeObserver(() => chart?.setSize({ width: place.clientWidth, height: HEIGHT })).observe(
  place,
)
