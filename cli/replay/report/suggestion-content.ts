import { durationText, numberText } from '../../dashboard/page/text.ts'
import type { Block, Section } from './document.ts'
import type { Peaks, ReplayReport } from './types.ts'
import { countText, percentText } from './words.ts'

/** The suggested limit, with the distribution of the peaks. */
export function suggestionSections({ suggestion }: ReplayReport): Section[] {
  if (!suggestion) return []
  const { policy, countedBy, keys, peaks, refuse, suggested, text } = suggestion
  const blocks: Block[] = [
    {
      kind: 'text',
      text: `${numberText(suggested.limit)} requests in ${durationText(suggested.windowMs)} by ${countedBy} would refuse ${numberText(suggested.refusedKeys)} of ${countText(keys, 'key')} (${percentText(suggested.refusedKeys / (keys || 1))}); at most ${percentText(refuse)} may be refused.`,
    },
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
