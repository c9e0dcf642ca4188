/** `npm run bench:cost`: measures what one decision costs Redis, for Sluice and `@upstash/ratelimit` on the same server. */
import { writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { writeBetween } from '../markers.ts'
import { countBytes } from './cost/bytes.ts'
import { countCommands } from './cost/commands.ts'
import type { Contender } from './cost/contender.ts'
import { type Cpu, measureCpu } from './cost/cpu.ts'
import { ours } from './cost/ours.ts'
import { peer } from './cost/peer.ts'
import { commandsTable, cpuTable, LEGEND, type Row } from './cost/table.ts'
import { type BenchServer, openServer } from './server.ts'

const USAGE = `Measures the commands, bytes and Redis CPU of one decision, for each algorithm of Sluice and of
@upstash/ratelimit on the same Redis.

  npm run bench:cost -- [options]

  --rounds N   rounds of the CPU measurement, 1 to 40 (default 15, about 90 seconds)
  --write      write the tables to tools/bench/RESULTS.md
  --json FILE  write the results to a file
  --help       show this text`

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '15' },
    write: { type: 'boolean' },
    json: { type: 'string' },
    help: { type: 'boolean' },
  },
})

async function main() {
  const rounds = Number(values.rounds)
  if (values.help || !(rounds >= 1 && rounds <= 40)) return console.log(USAGE)
  const server = await openServer()
  try {
    const { limits, bare } = await measure(server, [...ours, ...peer], rounds)
    const about = describe(server, rounds)
    const text = `${about}\n\n${commandsTable(limits)}\n\n${cpuTable(limits, bare)}`
    console.log(`${text}\n\n${LEGEND}`)
    if (values.write) {
      await writeBetween(new URL('RESULTS.md', import.meta.url), 'cost', text)
    }
    if (values.json) {
      await writeFile(values.json, `${JSON.stringify({ about, bare, limits }, null, 2)}\n`)
    }
  } finally {
    await server.stop()
  }
}

async function measure(server: BenchServer, contenders: Contender[], rounds: number) {
  if (!server.owned) throw new Error('This command empties its Redis. Unset REDIS_URL.')
  const counted: Omit<Row, 'cpu'>[] = []
  for (const contender of contenders) {
    const { by, algorithm } = contender
    const commands = await countCommands(server, contender)
    counted.push({ by, algorithm, commands, bytes: await countBytes(server, contender) })
    await server.send('FLUSHALL')
  }
  const cpu = await measureCpu(server, contenders, { rounds, log: console.error })
  const limits: Row[] = counted.map((row, index) => ({ ...row, cpu: cpu.contenders[index]! }))
  return { limits, bare: cpu.bare satisfies Cpu }
}

function describe({ name }: BenchServer, rounds: number): string {
  const version = (file: string) => createRequire(import.meta.url)(file).version
  const machine = `${availableParallelism()} CPUs, ${process.platform} ${process.arch}`
  return [
    `Measured on ${new Date().toISOString().slice(0, 10)} with ${name} (${machine}), Node ${process.versions.node},`,
    `Sluice ${version('../../package.json')} and \`@upstash/ratelimit\` ${version('@upstash/ratelimit/package.json')};`,
    `CPU over ${rounds} interleaved rounds.`,
  ].join(' ')
}

await main()
