import type { Databases } from '../legs/databases.ts'
import { digits, table } from './table.ts'

/** The results of several shards. */
export function databasesText({ maxCommands, scale }: Databases): string {
  const lines = scale.map(({ databases, batching, perSecond, billed, failed }) => {
    const one = scale.find((other) => other.databases === 1 && other.batching === batching)!
    const times = `${digits(perSecond / one.perSecond)} ×`
    return [databases, batching ? 'on' : 'off', digits(perSecond), times, digits(billed), failed]
  })
  return [
    `### Shards, each throttled to ${maxCommands} commands per second`,
    table(
      [
        'shards',
        'batching',
        'decisions/s',
        'relative to one shard',
        'billed commands per decision',
        'failed',
      ],
      lines,
    ),
    'With batching, one saturated database makes the batches larger, so that more shards add less. Requests of different isolates are never in one batch.',
  ].join('\n\n')
}
