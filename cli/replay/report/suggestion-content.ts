import { durationText, numberText } from '../../dashboard/page/text.ts'
import type { Block, Section } from './document.ts'
import type { Peaks, ReplayReport, Suggestion } from './types.ts'
import { countText, percentText, shortText } from './words.ts'

/** The suggested limit, with the distribution of the peaks. */
export function suggestionSections({ suggestion }: ReplayReport): Section[] {
  if (!suggestion) return []
  const { policy, countedBy, keys, peaks, suggested, text } = suggestion
  const blocks: Block[] = [
    {
      kind: 'text',
      text: `${numberText(suggested.limit)} requests in ${durationText(suggested.windowMs)} by ${countedBy} would refuse ${numberText(suggested.refusedKeys)} of ${countText(keys, 'key')} (${percentText(suggested.refusedKeys / (keys || 1))})${boundText(suggestion)}.`,
    },
    { kind: 'text', text: gapText(suggestion) },
    { kind: 'code', text },
    {
      kind: 'table',
      caption:
        'The highest number of requests of a key within a window, as a sliding window counts',
      head: ['window', 'p50', 'p90', 'p99', 'p99.9', 'max'],
      rows: peaks.map(({ windowMs, p50, p90, p99, p999, max }) => [
        durationText(windowMs),
        ...[p50, p90, p99, p999, max].map(numberText),
      ]),
    },
    ...peaks
      .filter(({ windowMs, curve }) => windowMs === suggested.windowMs && curve.length > 1)
      .map((one) => curveBlock(one, keys)),
  ]
  return [{ title: `A limit for ${policy}`, blocks }]
}

/** How the refused share compares with `--refuse-clients`. */
const boundText = ({ suggested, keys, refuse }: Suggestion) =>
  suggested.refusedKeys > refuse * keys
    ? `, more than ${percentText(refuse)}, because the gap below them is wide`
    : `; at most ${percentText(refuse)} may be refused`

/** Where the limit is between the peaks, and whom it would refuse. */
function gapText({ gap, refused, suggested }: Suggestion): string {
  const { below, above, highest } = gap
  const peaks = highest.map(numberText).join(', ')
  if (above === null || refused.length === 0) {
    return `The highest peaks are ${peaks}. The limit leaves room above all of them.`
  }
  const more = suggested.refusedKeys - refused.length
  const clients = refused.map(({ client, peak }) => `${shortText(client)} (${numberText(peak)})`)
  const others = more > 0 ? ` and ${numberText(more)} more` : ''
  return `The highest peaks are ${peaks}. The limit is in the gap between ${numberText(below)} and ${numberText(above)}, so clients up to ${numberText(below)} keep room. It would refuse ${clients.join(', ')}${others}.`
}

function curveBlock({ windowMs, curve }: Peaks, keys: number): Block {
  const [first, last] = [curve[0]!, curve.at(-1)!]
  const window = durationText(windowMs)
  return {
    kind: 'plot',
    label: `Keys that a limit in ${window} would refuse: from ${numberText(first.keys)} with a limit of ${numberText(first.limit)} to ${numberText(last.keys)} with ${numberText(last.limit)}. The height is logarithmic.`,
    ends: [`limit ${numberText(first.limit)}`, `limit ${numberText(last.limit)}`],
    // Most keys are below any useful limit, so that only a logarithm shows the others.
    series: [
      {
        name: 'keys',
        values: curve.map(({ keys }) => Math.log10(1 + keys)),
        highest: numberText(first.keys),
      },
    ],
    table: {
      caption: `Keys that a limit in ${window} would refuse`,
      head: ['limit', 'keys', 'share'],
      rows: curve.map(({ limit, keys: refused }) => [
        numberText(limit),
        numberText(refused),
        percentText(refused / (keys || 1)),
      ]),
    },
  }
}
