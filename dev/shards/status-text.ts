import type { ShardStatus, UnreachableShard } from './status.ts'

/** The table of `sluice shards status`. @param from the old layout of a move, if there is one */
export function statusText(
  rows: (ShardStatus | UnreachableShard)[],
  from?: readonly string[],
): string {
  const head = ['shard', 'keys', 'memory', 'load', ...(from ? ['left', 'moved'] : [])]
  const table = rows.map((row) => {
    if ('error' in row) return [row.name, 'unreachable', ...head.slice(2).map(() => '-')]
    const { name, keys, memory, load, left, marks } = row
    return [
      name,
      number(keys),
      memory === undefined ? '-' : bytes(memory),
      load === undefined ? '-' : `${number(load)} commands/s`,
      ...(from ? [number(left), number(marks)] : []),
    ]
  })
  const widths = head.map((_, column) =>
    Math.max(...[head, ...table].map((row) => row[column]!.length)),
  )
  const lines = [head, ...table].map((row) =>
    row
      .map((cell, n) => (n === 0 ? cell.padEnd(widths[n]!) : cell.padStart(widths[n]!)))
      .join('  ')
      .trimEnd(),
  )
  return (from ? [...lines, '', ...restText(rows, from)] : lines).join('\n')
}

/** Says what is left to move. */
function restText(rows: (ShardStatus | UnreachableShard)[], from: readonly string[]): string[] {
  const answers = rows.filter((row): row is ShardStatus => !('error' in row))
  const unknown = rows
    .filter((row) => 'error' in row && from.includes(row.name))
    .map(({ name }) => name)
    .join(', ')
  const sum = (field: 'left' | 'replies') => answers.reduce((all, row) => all + row[field], 0)
  const [left, replies] = [sum('left'), sum('replies')]
  const more = unknown && `, and perhaps more at ${unknown}`
  const none = unknown ? `Keys may be left to move at ${unknown}.` : 'Nothing is left to move.'
  const olds = answers.filter(({ hasBegun }) => hasBegun !== undefined)
  const waiting = olds.filter(({ hasBegun }) => !hasBegun).map(({ name }) => name)
  return [
    ...(waiting.length > 0 ? [`The move has not begun at ${waiting.join(', ')}.`] : []),
    left > 0 ? `${number(left)} keys are left to move${more}: npx sluice shards move` : none,
    ...(replies > 0
      ? [
          `${number(replies)} replies of idempotent calls are at the old shards, for at most a minute. Keep "moveFrom" until then.`,
        ]
      : []),
  ]
}

const number = (value: number) => value.toLocaleString('en')

function bytes(size: number): string {
  const units = ['B', 'kB', 'MB', 'GB']
  const power = Math.min(3, Math.floor(Math.log10(Math.max(1, size)) / 3))
  return `${(size / 1000 ** power).toFixed(power > 0 ? 1 : 0)} ${units[power]}`
}
