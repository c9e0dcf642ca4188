import type { Isolates } from '../legs/isolates.ts'
import { variants } from '../variants.ts'
import { table } from './table.ts'

export function isolatesText(list: Isolates[]): string {
  const lines = list.map(({ id, share, calls, over, under }) => [
    variants[id].name,
    `${(share * 100).toFixed(2)} %`,
    calls.toFixed(3),
    over,
    under,
  ])
  const head = [
    'limiter',
    'admitted requests within the quota',
    'HTTP calls per request',
    'over-admitted',
    'under-admitted',
  ]
  return [
    '### Eight isolates on one quota',
    'The load uses 95 % of the quota first, and then more than the rest. Under-admitted units are leased to isolates that receive no more requests.',
    table(head, lines),
  ].join('\n\n')
}
