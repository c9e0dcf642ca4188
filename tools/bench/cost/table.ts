import { table } from '../stack/report/table.ts'
import { spread } from '../statistics.ts'
import type { Bytes } from './bytes.ts'
import type { Commands } from './commands.ts'
import type { Contender } from './contender.ts'
import type { Cpu, CpuOfContender, Figure } from './cpu.ts'

export interface Row {
  by: Contender['by']
  algorithm: string
  /** Commands of one call, which may be several decisions. */
  commands: Commands
  bytes: Bytes
  cpu: CpuOfContender
}

/** Explains the columns on the console. The documentation has a longer text. */
export const LEGEND = `commands           billed by Upstash for one call: a client's first request, an admitted one, a refused one, a peek
bytes              memory in Redis of all keys of one client
CPU of the thread  of the main thread of Redis per decision, including reading and replying
run time           of the command alone per decision, by the clock (INFO commandstats)
Each CPU cell      median in µs (minimum), ratio to a bare INCR (middle half of the rounds)`

/** The first two columns of the tables. */
const name = ({ by, algorithm }: Row) => `${by === 'Sluice' ? by : `\`${by}\``} | ${algorithm}`

export function commandsTable(limits: Row[]): string {
  const lines = limits.map((row) => {
    const { first, admitted, refused, peek } = row.commands
    return [name(row), first, admitted, refused, peek, row.bytes.ipv4, row.bytes.ipv6]
  })
  return table(
    [
      'limiter',
      'algorithm',
      'commands: first',
      'commands: admitted',
      'commands: refused',
      'commands: peek',
      'bytes: IPv4',
      'bytes: IPv6',
    ],
    lines,
  )
}

export function cpuTable(limits: Row[], bare: Cpu): string {
  const lines = limits.map((row) => [
    name(row),
    cell(row.cpu.admitted.thread),
    cell(row.cpu.refused.thread),
    cell(row.cpu.admitted.run),
    cell(row.cpu.refused.run),
  ])
  return table(
    [
      'limiter',
      'algorithm',
      'CPU of the thread: admitted',
      'CPU of the thread: refused',
      'run time: admitted',
      'run time: refused',
    ],
    [[' | bare `INCR`', us(bare.thread), '', us(bare.run), ''], ...lines],
  )
}

const us = (figure: Figure | undefined) =>
  figure ? `${figure.median.toFixed(2)} µs (${figure.min.toFixed(2)})` : '–'

function cell(figure: Figure | undefined): string {
  if (!figure) return '–'
  const { median, low, high } = spread(figure.ratios)
  return `${us(figure)}, ${median.toFixed(1)} × (${low.toFixed(1)}–${high.toFixed(1)})`
}
