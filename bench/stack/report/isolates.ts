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
  const head = ['', 'admitted of what was due', 'HTTP calls', 'over', 'under']
  return [
    '### Eight isolates on one quota',
    'So many ask as 95 % of it, and then for more than the rest. What is short in the end is held by isolates that nobody asks any more.',
    table(head, lines),
  ].join('\n\n')
}
