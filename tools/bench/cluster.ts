/** `npx node tools/bench/cluster.ts`: measures decisions per second while a Redis Cluster grows. */
import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { writeBetween } from '../markers.ts'
import { measureCluster } from './cluster/measure.ts'
import { clusterText } from './cluster/report.ts'
import { startLoad } from './stack/load.ts'
import { pinned } from './stack/workerd.ts'
import { buildWorkers } from './stack/workers.ts'
import { within } from './within.ts'

const USAGE = `Measures decisions per second through the Worker and the bridge while a Redis Cluster grows from one
master to several, with traffic. A gate in front of each master limits its commands per second.

  npx node tools/bench/cluster.ts [options]

  --masters N       number of masters at the end, 1 to 6 (default 3)
  --max-commands N  commands per second of each master, 20 to 2000 (default 100)
  --seconds N       seconds of the measurement with each number of masters, 1 to 60 (default 10)
  --write           write the table to tools/bench/RESULTS.md
  --help            show this text`

const { values } = parseArgs({
  options: {
    masters: { type: 'string', default: '3' },
    'max-commands': { type: 'string', default: '100' },
    seconds: { type: 'string', default: '10' },
    write: { type: 'boolean' },
    help: { type: 'boolean' },
  },
})

async function main() {
  if (values.help) return console.log(USAGE)
  const options = {
    masters: within('--masters', values.masters, 1, 6),
    maxCommands: within('--max-commands', values['max-commands'], 20, 2000),
    seconds: within('--seconds', values.seconds, 1, 60),
  }
  const workers = await buildWorkers(pinned)
  const load = startLoad()
  try {
    const scale = await measureCluster({ load, workers }, { ...options, log: console.error })
    const date = new Date().toISOString().slice(0, 10)
    const machine = `${availableParallelism()} CPUs, Node ${process.versions.node}`
    const about = `Measured on ${date} on ${machine}; each master passes ${options.maxCommands} commands a second, ${options.seconds} s for each row.`
    const text = `${about}\n\n${clusterText(scale)}`
    console.log(text)
    if (values.write) {
      const page = new URL('RESULTS.md', import.meta.url)
      await writeBetween(page, 'cluster', text)
    }
  } finally {
    load.stop()
    await workers.remove()
  }
}

// On a signal exit at once: the watchdogs end all child processes.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
await main()
