/** `npx node tools/bench/holds.ts`: when a batch should wait. Simulates rules, and writes their costs and the picture of docs/explanation/cost.md. */
import { writeFile } from 'node:fs/promises'
import { HOLD, type HoldRule } from '../../src/core/connection/connection.ts'
import { writeBetween } from '../markers.ts'
import { type BenchServer, openServer } from './server.ts'
import { simulate } from './simulate/run.ts'
import { digits, table } from './stack/report/table.ts'
import { card, round, WIDTH } from './svg.ts'

const DOCS = new URL('../../docs/explanation/', import.meta.url)

/** Measures the latency: random times at one isolate. */
const ONE = { isolates: 1, colos: 1, rps: 1500, seconds: 6 }
/** Measures the bill. */
const FLEET = { isolates: 20, colos: 10, rps: 20_000, seconds: 3 }

/** The rules, from none to the longest wait. */
const HOLDS: HoldRule[] = [
  { lists: 2, periodMs: 1, ms: 1 },
  { lists: 3, periodMs: 2, ms: 1 },
  { lists: 1, periodMs: 1, ms: 1 },
  HOLD,
  { lists: 2, periodMs: 1, ms: 2 },
  { lists: 3, periodMs: 2, ms: 2 },
]

export interface Point {
  name: string
  isOurs: boolean
  /** The added latency of a decision, ms. */
  p50: number
  p99: number
  calls: number
  /** For a million decisions. */
  dollars: number
}

const nameOf = ({ lists, periodMs, ms }: HoldRule) =>
  `${ms} ms (${2 * ms} ms alone), after ${lists} ${lists === 1 ? 'list' : 'lists'} in ${periodMs} to ${2 * periodMs} ms`

async function measure(server: BenchServer): Promise<Point[]> {
  const never = { name: 'never batched', batching: false, denialCache: true }
  const base = await simulate(ONE, never, server)
  const ways = [
    never,
    {
      ...never,
      name: 'one turn of the event loop',
      batching: true,
      hold: { lists: 1e9, periodMs: 1, ms: 0 },
    },
    ...HOLDS.map((hold) => ({ name: nameOf(hold), batching: true, denialCache: true, hold })),
  ]
  const points: Point[] = []
  for (const way of ways) {
    console.error(way.name)
    const { p50, p99 } = await simulate(ONE, way, server)
    const { calls, billed } = await simulate(FLEET, way, server)
    points.push({
      name: way.name,
      isOurs: 'hold' in way && way.hold === HOLD,
      p50: p50 - base.p50,
      p99: p99 - base.p99,
      calls,
      dollars: 2 * billed,
    })
  }
  return points
}

export function text(points: Point[]): string {
  const head = [
    '',
    'a batch waits',
    'added p50, ms',
    'added p99, ms',
    'HTTP calls',
    '$ per million',
  ]
  const lines = points.map(({ name, isOurs, p50, p99, calls, dollars }, index) => [
    index + 1,
    isOurs ? `**${name}** (Sluice)` : name,
    ...[p50, p99, calls, dollars].map((value) => value.toFixed(2)),
  ])
  return table(head, lines)
}

const [LEFT, TOP, HEIGHT] = [70, 60, 420]
const [WIDE, HIGH] = [WIDTH - LEFT - 40, HEIGHT - TOP - 60]
const STYLE = `.line { stroke: #d1d9e0 } .other { fill: #7d9cc9 } .ours { fill: #067a53 } text.ours { font-weight: 600 }`
const DARK = `.line { stroke: #3d444d } .other { fill: #4a6fa5 } .ours { fill: #4cd39b }`

export function picture(points: Point[]): string {
  const most = Math.ceil(Math.max(...points.map(({ p50 }) => p50)) * 5) / 5
  const [least, dearest] = [4, 8]
  const x = (ms: number) => round(LEFT + (ms / most) * WIDE)
  const y = (dollars: number) => round(TOP + ((dearest - dollars) / (dearest - least)) * HIGH)
  const grid = [4, 5, 6, 7, 8].map(
    (dollars) =>
      `<path class="line" d="M${LEFT} ${y(dollars)}H${LEFT + WIDE}"/><text class="muted end" x="${LEFT - 10}" y="${y(dollars) + 4}">$${dollars}</text>`,
  )
  const ticks = Array.from({ length: Math.round(most * 5) + 1 }, (_, n) => n / 5).map(
    (ms) => `<text class="muted" x="${x(ms) - 8}" y="${TOP + HIGH + 24}">${ms.toFixed(1)}</text>`,
  )
  const dots = points.map(({ isOurs, p50, dollars }, index) => {
    const by = isOurs ? 'ours' : 'other'
    const [at, high] = [x(p50), y(dollars)]
    const label = isOurs ? `${index + 1}: Sluice` : `${index + 1}`
    return `<circle class="${by}" cx="${at}" cy="${high}" r="${isOurs ? 7 : 5}"/><text ${isOurs ? 'class="ours" ' : ''}x="${at - 4}" y="${high - 12}">${label}</text>`
  })
  const figures = points.map(
    ({ name, p50, dollars }) => `${name}: ${digits(p50)} ms, $${digits(dollars)}`,
  )
  return card({
    title: 'What a wait for other requests saves',
    description: `Added p50 in ms, and dollars for a million decisions. ${figures.join('. ')}.`,
    height: HEIGHT,
    style: STYLE,
    dark: DARK,
    body: [
      `<text class="title" x="20" y="30">Dollars for a million decisions, by the added p50</text>`,
      ...grid,
      ...ticks,
      `<text class="muted end" x="${LEFT + WIDE}" y="${HEIGHT - 14}">added p50 at 1500 requests a second, ms</text>`,
      ...dots,
    ],
  })
}

if (import.meta.main) {
  const server = await openServer()
  try {
    if (!server.owned) throw new Error('This command empties its Redis. Unset REDIS_URL.')
    const points = await measure(server)
    await writeBetween(new URL('cost.md', DOCS), 'holds', text(points))
    await writeFile(new URL('batching.svg', DOCS), picture(points))
  } finally {
    await server.stop()
  }
}
