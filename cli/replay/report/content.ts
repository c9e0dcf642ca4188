/** The contents of a report, for the terminal and for the page. */
import { durationText, numberText } from '../../dashboard/page/text.ts'
import { changeSections, notReplayedBlocks, offenderSections } from './client-content.ts'
import type { Block, Plot, Section, Series } from './document.ts'
import { expectationSections } from './expectation-content.ts'
import { suggestionSections } from './suggestion-content.ts'
import type { PolicyCounts, RefusalCounts, ReplayReport } from './types.ts'
import {
  betweenText,
  countText,
  minuteText,
  percentText,
  plainText,
  rangeText,
  timeText,
} from './words.ts'

export const titleOf = ({ source, config }: ReplayReport): string =>
  `Replay of ${source.files.map(sourceName).join(', ') || STDIN} with ${plainText(config)}`

const STDIN = 'standard input'
const sourceName = (file: string) => (file === '-' ? STDIN : plainText(file))

export const sectionsOf = (report: ReplayReport): Section[] => [
  { title: 'Summary', blocks: summary(report) },
  ...policySections(report),
  ...expectationSections(report),
  ...offenderSections(report),
  ...changeSections(report),
  ...suggestionSections(report),
  ...logSections(report),
]

function summary(report: ReplayReport): Block[] {
  const { source, total, wouldRefuse, answered, clients, from, to, engine } = report
  const { requests, refused, share } = total
  const texts = [
    `${countText(requests, 'request')} of ${clients.exact ? '' : 'at most '}${countText(clients.count, 'client')}${from === null ? '' : `, from ${timeText(from)} to ${timeText(to!)} UTC`}.`,
    `${engine === 'redis' ? 'The deployed script decided them in Redis' : 'Decided in memory, with the same results as the deployed script'}.`,
    refused.high === 0
      ? noneRefused(report)
      : `${capital(betweenText(refused))} of them would be refused (${rangeText(share, percentText)}), to ${betweenText(total.clients)} of the clients.`,
  ]
  if (wouldRefuse.high > 0) {
    texts.push(
      `Shadow policies would refuse ${betweenText(wouldRefuse)} more if they were enforced.`,
    )
  }
  const lateShare = source.late / Math.max(1, requests)
  if (lateShare > MUCH_LATE) {
    texts.unshift(
      `${percentText(lateShare)} of the requests are more than a minute out of order, so the numbers are wrong. Sort the log by time.`,
    )
  }
  if (clients.count === 1 && requests > MANY) {
    texts.push(
      'All requests have the same client. If it is the address of a proxy, name the field with the address of the client: --map ip=FIELD.',
    )
  }
  if (source.interrupted) texts.unshift('The replay was stopped before the end of the log.')
  if (source.wholeSeconds && refused.low !== refused.high) {
    texts.push(
      'The stamps of the log are whole seconds. The bounds come from two replays: with the requests of each second spread over it, and all at once.',
    )
  }
  for (const status of [429, 403] as const) {
    const { requests, refused } = answered[status]
    if (requests === 0) continue
    texts.push(
      `The log has ${countText(requests, 'request')} answered with ${status} already; ${betweenText(refused)} of them would be refused here too.`,
    )
  }
  return texts.map((text) => ({ kind: 'text', text }))
}

/** The share of late requests above which the numbers have no meaning. */
const MUCH_LATE = 0.05
/** The requests above which several clients are expected. */
const MANY = 100

function noneRefused({ policies, notReplayed }: ReplayReport): string {
  if (notReplayed.length === 0) return 'No request would be refused.'
  return policies.length === 0
    ? 'No policy was replayed, so nothing is known about refusals.'
    : 'The policies that were replayed would refuse no request.'
}

const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1)

function policySections(report: ReplayReport): Section[] {
  const { policies, notReplayed } = report
  const blocks: Block[] = []
  if (policies.length > 0) {
    blocks.push({
      kind: 'table',
      caption: 'Requests and refusals by policy. The times are UTC.',
      head: ['policy', 'requests', 'refused', 'share', 'clients', 'first refusal', 'worst minute'],
      rows: policies.map(policyCells),
    })
  }
  blocks.push(
    ...notReplayedBlocks(
      'Not replayed, because the log does not have what they need:',
      notReplayed,
    ),
  )
  const { total } = report
  if (total.requests > 0) blocks.push(overTime(report, 'all policies', total, 'refused'))
  const refusing = policies.filter(({ refused }) => refused.high > 0)
  const isTotal = refusing.length === 1 && refusing[0]!.mode === 'enforce'
  if (!isTotal) {
    for (const policy of refusing) {
      const name = policy.mode === 'shadow' ? 'would be refused' : 'refused'
      blocks.push(overTime(report, nameOf(policy), policy, name))
    }
  }
  return [{ title: 'Policies', blocks }]
}

function policyCells(policy: PolicyCounts): string[] {
  const { requests, refused, share, clients, firstRefusal, worstMinute } = policy
  return [
    nameOf(policy),
    numberText(requests),
    rangeText(refused),
    rangeText(share, percentText),
    rangeText(clients),
    firstRefusal === null ? '–' : timeText(firstRefusal),
    worstMinute ? `${minuteText(worstMinute.time)} (${rangeText(worstMinute.refused)})` : '–',
  ]
}

function nameOf({ name, kind, mode }: PolicyCounts): string {
  if (kind === 'deny') return `${name} (deny)`
  if (kind === 'missing-key') return `${name} (missing key)`
  return mode === 'shadow' ? `${name} (shadow)` : name
}

function overTime(
  { slotMs, slotsFrom }: ReplayReport,
  name: string,
  { requests, refused, overTime }: RefusalCounts,
  series: 'refused' | 'would be refused',
): Block {
  const { low, high } = overTime
  const end = slotsFrom + overTime.requests.length * slotMs
  const withSeconds = (slot: number) => timeText(slotsFrom + slot * slotMs)
  const most = Math.max(...overTime.requests)
  const isBetween = refused.low !== refused.high
  const plot: Plot = {
    label: `Requests every ${durationText(slotMs)}, ${name}: ${numberText(requests)}, of which ${betweenText(refused)} ${series}. Most in ${durationText(slotMs)}: ${countText(most, 'request')}, ${numberText(Math.max(...high))} ${series}.`,
    ends:
      slotMs < 60_000
        ? [timeText(slotsFrom), timeText(end).slice(11)]
        : [minuteText(slotsFrom), minuteText(end)],
    series: [
      seriesOf('requests', overTime.requests),
      ...(isBetween ? [seriesOf('may be refused', high)] : []),
      seriesOf(series, low),
    ],
    table: {
      caption: `Requests every ${durationText(slotMs)}, ${name}. The times are UTC. Times without requests are left out.`,
      head: ['from', 'requests', series],
      rows: overTime.requests.flatMap((count, slot) =>
        count > 0
          ? [
              [
                withSeconds(slot),
                numberText(count),
                rangeText({ low: low[slot]!, high: high[slot]! }),
              ],
            ]
          : [],
      ),
    },
  }
  return { kind: 'plot', ...plot }
}

const seriesOf = (name: Series, values: number[]) => ({
  name,
  values,
  highest: numberText(Math.max(...values)),
})

function logSections({ source, notes }: ReplayReport): Section[] {
  const { format, lines, unparsed, withoutRequest, firstUnparsed, late } = source
  const items = [
    `Format: ${format}. ${countText(lines, 'line')}, ${countText(unparsed, 'line')} not parsed.`,
    ...(withoutRequest > 0
      ? [
          `${countText(withoutRequest, 'line')} without an HTTP request, such as the start of a TLS connection.`,
        ]
      : []),
    ...(late > 0
      ? [
          `${countText(late, 'line')} more than a minute out of order, counted at the time of the line before.`,
        ]
      : []),
    ...firstUnparsed.map(
      ({ file, line, reason, text }) =>
        `${plainText(file)}, line ${line}: ${reason}: ${plainText(text)}`,
    ),
    ...notes.map(plainText),
  ]
  return [{ title: 'The log', blocks: [{ kind: 'list', items }] }]
}
