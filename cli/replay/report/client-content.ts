/** The parts of a report about clients. */
import { numberText } from '../../dashboard/page/text.ts'
import type { NotReplayed } from '../decide/verdict.ts'
import type { Block, Section } from './document.ts'
import type { Change, ClientReport, Frequencies, ReplayReport } from './types.ts'
import {
  atLeastText,
  betweenText,
  countText,
  minuteText,
  percentText,
  plainText,
  rangeText,
  shortText,
  timeText,
} from './words.ts'

export function offenderSections({ offenders }: ReplayReport): Section[] {
  if (offenders.length === 0) return []
  const items = offenders.map(
    (client): Block => ({ kind: 'item', title: titleOf(client), lines: linesOf(client) }),
  )
  return [{ title: 'Clients with the most refusals', blocks: items }]
}

function titleOf({ client, network, country, asn }: ClientReport): string {
  const place = [network, country, asn && `AS${asn.replace(/^AS/i, '')}`].filter(Boolean).join(', ')
  return plainText(place ? `${client} (${place})` : client)
}

function linesOf(client: ClientReport): string[] {
  const { requests, refused, wouldRefuse, policies, statuses, worstMinute, paths } = client
  const rules = policies.map(({ name, refused }) => `${name} ${rangeText(refused)}`).join(', ')
  const outcome = [
    ...(refused.high > 0 ? [`${betweenText(refused)} refused`] : []),
    ...(wouldRefuse.high > 0 ? [`${betweenText(wouldRefuse)} would be refused`] : []),
  ].join(', ')
  const admitted = { low: requests - refused.high, high: requests - refused.low }
  const logged = Object.entries(statuses).map(([status, count]) => `${status} ${numberText(count)}`)
  return [
    `${countText(requests, 'request')}: ${rangeText(admitted)} admitted, ${outcome} (${rules}).`,
    `From ${timeText(client.from)} to ${timeText(client.to)} UTC; at most ${countText(worstMinute.requests, 'request')} in one minute (${minuteText(worstMinute.time)}).`,
    `Logged statuses: ${logged.join(', ')}.`,
    ...agentLines(client.userAgents),
    ...pathLines(paths, requests),
  ]
}

function pathLines(paths: Frequencies, all: number): string[] {
  if (paths.requests === 0) return []
  const top = paths.top.map(({ text, requests }) => `${shortText(text)} (${atLeastText(requests)})`)
  const seen = paths.requests < all ? ` in ${numberText(paths.requests)} of the requests` : ''
  const { low, high } = paths.different
  const which = low === high ? 'most often' : 'such as'
  return [`${different(paths, 'path')}${seen}, ${which} ${top.join(', ')}.`]
}

const different = ({ different: { low, high } }: Frequencies, noun: string) =>
  `${low === high ? '' : 'At least '}${countText(low, noun)}`

function agentLines(agents: Frequencies): string[] {
  const [first] = agents.top
  if (!first) return []
  const share = percentText(first.requests.low / agents.requests)
  const others =
    agents.different.high === 1
      ? ''
      : ` (${share} of the requests; ${different(agents, 'user agent').toLowerCase()})`
  return [`User agent: ${shortText(first.text)}${others}`]
}

export function changeSections({ config, against }: ReplayReport): Section[] {
  if (!against) return []
  const { both, added, removed, notReplayed } = against
  const other = plainText(against.config)
  const blocks: Block[] = [
    { kind: 'text', text: `Both configurations refuse ${counted(both, 'request')}.` },
    ...changeBlocks(`Refused by ${plainText(config)}, admitted by ${other}`, added),
    ...changeBlocks(`Admitted by ${plainText(config)}, refused by ${other}`, removed),
  ]
  blocks.push(...notReplayedBlocks(`Not replayed of ${other}:`, notReplayed))
  return [{ title: `Changes against ${other}`, blocks }]
}

/** The policies that the log cannot decide, with a title if there are any. */
export const notReplayedBlocks = (title: string, notReplayed: NotReplayed[]): Block[] =>
  notReplayed.length === 0
    ? []
    : [
        { kind: 'text', text: title },
        {
          kind: 'list',
          items: notReplayed.map(({ policy, reason }) => `${policy}: ${plainText(reason)}`),
        },
      ]

const counted = (bounds: Change['requests'], noun: string) =>
  `${betweenText(bounds)} ${noun}${bounds.low === 1 && bounds.high === 1 ? '' : 's'}`

function changeBlocks(title: string, { requests, clients, policies, top }: Change): Block[] {
  if (requests.high === 0) return [{ kind: 'text', text: `${title}: no request.` }]
  return [
    {
      kind: 'text',
      text: `${title}: ${counted(requests, 'request')} of ${counted(clients, 'client')}.`,
    },
    {
      kind: 'table',
      caption: `${title}, by policy`,
      head: ['policy', 'requests'],
      rows: policies.map(({ name, requests }) => [name, rangeText(requests)]),
    },
    {
      kind: 'table',
      caption: `${title}, by client`,
      head: ['client', 'requests'],
      rows: top.map(({ client, requests }) => [client, rangeText(requests)]),
    },
  ]
}
