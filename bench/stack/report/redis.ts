import type { RedisCost } from '../redis-cost.ts'
import { table } from './table.ts'

export function redisText(costs: RedisCost[]): string {
  const lines = costs.map(({ name, bytes, cpu }) => [
    name,
    bytes?.ipv4 ?? '–',
    bytes?.ipv6 ?? '–',
    cpu ? cpu.min.toFixed(1) : '–',
    cpu ? `${cpu.ratio.toFixed(1)} (${cpu.spread.map((one) => one.toFixed(1)).join('–')})` : '–',
  ])
  const head = [
    'script',
    'bytes per client, IPv4',
    'bytes per client, IPv6',
    'Redis CPU, µs in the best round',
    'relative to a bare INCR of the same round',
  ]
  return `### Redis by itself\n\n${table(head, lines)}`
}
