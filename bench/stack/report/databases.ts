import type { Databases } from '../legs/databases.ts'
import { digits, table } from './table.ts'

/** What more databases are good for. */
export function databasesText({ maxCommands, scale, killed }: Databases): string {
  const lines = scale.map(({ databases, shared, perSecond, billed, failed }) => {
    const one = scale.find((other) => other.databases === 1 && other.shared === shared)!
    const times = `${digits(perSecond / one.perSecond)} ×`
    return [databases, shared ? 'yes' : 'no', digits(perSecond), times, digits(billed), failed]
  })
  const { living, dead } = killed
  return [
    `### Many databases, each of ${maxCommands} commands a second`,
    table(['databases', 'shared calls', 'decisions/s', 'of one', 'billed', 'failed'], lines),
    'Calls that are shared are fuller where one database is behind with its work than where several are not; requests of many isolates share none.',
    `One of two killed: of its clients' requests ${dead.fallback} of ${dead.requests} were not decided by Redis, of the others' **${living.fallback}** of ${living.requests}.`,
  ].join('\n\n')
}
