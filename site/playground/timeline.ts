/** The timeline: each request as a tick, above the line if it was admitted, and the quota of one client over time. */
import { compactText, numberText } from '../../cli/dashboard/page/text.ts'
import type { Played } from './engine/answer.ts'
import { momentText, waitText } from './engine/times.ts'
import { rounded, svg, ticks } from './svg.ts'

const HEIGHT = 190
const LINE = 140
const QUOTA = 110
const ADMITTED = 34
const REFUSED = 18
const LEFT = 34
const RIGHT = 14

export interface TimelineOptions {
  played: Played
  /** The policy whose quota is shown. */
  policy: string
  watched: string
  /** The place of the chosen request in the list. */
  chosen: number
  width: number
  onChoose(index: number): void
}

/** The size of a quota that is full: it may be above the limit, with a burst. */
const sizeOf = (units: number[], limit: number) => Math.max(1, limit, ...units)

export function drawTimeline(place: HTMLElement, options: TimelineOptions) {
  const { played, policy, watched, chosen, width, onChoose } = options
  const { served, samples, start, from, to } = played
  const span = Math.max(1, to - from)
  const x = (at: number) => LEFT + ((at - from) / span) * (width - LEFT - RIGHT)
  const quota = samples.flatMap(({ at, limits }) => {
    const state = limits.find((one) => one.policy === policy)
    return state ? [{ at, units: state.remaining, limit: state.limit }] : []
  })
  const full = sizeOf(
    quota.map(({ units }) => units),
    quota[0]?.limit ?? 1,
  )
  const steps = quota
    .map(({ at, units }) => `H${rounded(x(at))}V${rounded(LINE - (units / full) * QUOTA)}`)
    .join('')
  const placesOf = (isAdmitted: boolean) =>
    served.filter(({ decision }) => decision.allowed === isAdmitted).map(({ at }) => x(at))
  const axis = width < 500 ? 3 : 5
  const marks = Array.from({ length: axis + 1 }, (_, n) => from + (span * n) / axis)
  const admitted = placesOf(true)
  const refused = placesOf(false)
  const one = served[chosen]
  const picture = svg(
    'svg',
    {
      viewBox: `0 0 ${width} ${HEIGHT}`,
      height: HEIGHT,
      role: 'img',
      'aria-label': `${numberText(admitted.length)} requests admitted and ${numberText(refused.length)} refused within ${waitText(span)}. The shaded area is the remaining quota of ${watched} by the policy ${policy}, of ${numberText(full)} units.`,
    },
    svg('path', { class: 'quota', d: `M${LEFT} ${LINE}${steps}H${rounded(x(to))}V${LINE}z` }),
    svg('path', { class: 'admitted', d: ticks(admitted, LINE, -ADMITTED) }),
    svg('path', { class: 'refused', d: ticks(refused, LINE, REFUSED) }),
    svg('path', { class: 'base', d: `M${LEFT} ${LINE}H${width - RIGHT}` }),
    svg('text', { x: LEFT - 6, y: LINE - QUOTA + 4, 'text-anchor': 'end' }, compactText(full)),
    svg('text', { x: LEFT - 6, y: LINE + 4, 'text-anchor': 'end' }, '0'),
    ...marks.map((at, n) =>
      svg(
        'text',
        {
          x: rounded(x(at)),
          y: HEIGHT - 8,
          'text-anchor': n === 0 ? 'start' : n === axis ? 'end' : 'middle',
        },
        momentText(at - start),
      ),
    ),
    ...(one ? [svg('path', { class: 'chosen', d: `M${rounded(x(one.at))} 16V${LINE + 26}` })] : []),
  )
  picture.addEventListener('click', ({ clientX }) => {
    const box = picture.getBoundingClientRect()
    const at =
      from + (((clientX - box.left) * (width / box.width) - LEFT) / (width - LEFT - RIGHT)) * span
    onChoose(nearest(played, at))
  })
  place.replaceChildren(picture)
}

/** The place of the request nearest to a time. */
function nearest({ served }: Played, at: number): number {
  let best = 0
  served.forEach((one, index) => {
    if (Math.abs(one.at - at) < Math.abs(served[best]!.at - at)) best = index
  })
  return best
}

/** A small picture of a run, for a row of a table. */
export function smallTimeline(
  times: [at: number, isAdmitted: boolean][],
  from: number,
  to: number,
) {
  const width = 190
  const x = (at: number) => ((at - from) / Math.max(1, to - from)) * (width - 2) + 1
  const placesOf = (wanted: boolean) =>
    times.filter(([, isAdmitted]) => isAdmitted === wanted).map(([at]) => x(at))
  return svg(
    'svg',
    { viewBox: `0 0 ${width} 32`, 'aria-hidden': 'true' },
    svg('path', { class: 'admitted', d: ticks(placesOf(true), 18, -16) }),
    svg('path', { class: 'refused', d: ticks(placesOf(false), 18, 10) }),
    svg('path', { class: 'base', d: `M0 18H${width}` }),
  )
}
