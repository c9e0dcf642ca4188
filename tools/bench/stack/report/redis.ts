import { spread } from '../../statistics.ts'
import type { RedisCost } from '../redis-cost.ts'
import { table, withSpread } from './table.ts'

export function redisText(costs: RedisCost[]): string {
  const ratio = (values: number[] | undefined) => withSpread(values && spread(values))
  const lines = costs.map(({ by, algorithm, bytes, cpu }) => [
    `${by}, ${algorithm}`,
    bytes?.ipv4 ?? '–',
    bytes?.ipv6 ?? '–',
    ratio(cpu?.admitted),
    ratio(cpu?.refused),
  ])
  const head = [
    'script',
    'bytes per client, IPv4',
    'bytes per client, IPv6',
    'Redis CPU over a bare INCR, admitted',
    'Redis CPU over a bare INCR, refused',
  ]
  return `### Redis by itself\n\n${table(head, lines)}`
}
