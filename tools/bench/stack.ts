/** `npm run bench`: measures Sluice and other limiters, in turn, with the same Redis, bridge, workerd and load. */
import { readFile, writeFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { writeBetween } from '../markers.ts'
import { openServer } from './server.ts'
import { startLoad } from './stack/load.ts'
import { about, warningOf } from './stack/report/about.ts'
import { panelsOf } from './stack/report/panels.ts'
import { reportOf, verdictOf } from './stack/report/report.ts'
import { draw } from './stack/report/svg.ts'
import type { Results } from './stack/results.ts'
import { otherParts, type Plan, quick, runAll, thorough, verdictParts } from './stack/suite.ts'
import { pinned } from './stack/workerd.ts'
import { buildWorkers } from './stack/workers.ts'
import { workloads } from './stack/workloads.ts'

const USAGE = `Measures the whole stack (Worker, bridge, Redis) for Sluice and other limiters. Prints a verdict
with the targets first, then latency, HTTP calls, billed commands and CPU as Markdown tables.

  npm run bench -- [options]

  --quick         a few short rounds of what the verdict needs, less than 90 seconds
  --rounds N      number of rounds, 1 to 40 (default 15, about 15 minutes)
  --only ID,…     run only these parts: ${workloads.map(({ id }) => id).join(', ')},
                  ${[...verdictParts, ...otherParts].join(', ')}
  --soak          run only the soak test, 60 s
  --workerd PATH  use another workerd binary
  --json FILE     write all figures to a file
  --page FILE,…   measure nothing; write such files, the newest first, to
                  docs/reference/benchmarks.md, and the first to tools/bench/RESULTS.md
  --help          show this text`

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    rounds: { type: 'string' },
    only: { type: 'string' },
    soak: { type: 'boolean', default: false },
    workerd: { type: 'string' },
    json: { type: 'string' },
    page: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})

function planOf(): Plan | undefined {
  const plan = values.quick ? quick : thorough
  if (values.soak) return { ...plan, only: ['soak'], soakSeconds: values.quick ? 3 : 60 }
  const rounds = Number(values.rounds ?? plan.rounds)
  if (values.help || !(rounds >= 1 && rounds <= 40)) return undefined
  return { ...plan, rounds, only: values.only?.split(',') }
}

async function main() {
  const plan = planOf()
  if (!plan) return console.log(USAGE)
  if (values.page) return writePage(values.page.split(','))
  const began = Date.now()
  const warning = warningOf()
  const log = (line: string) =>
    console.error(`${((Date.now() - began) / 1000).toFixed(0).padStart(4)} s  ${line}`)
  log('building the Workers')
  const binary = values.workerd ?? pinned
  const workers = await buildWorkers(binary)
  const server = await openServer()
  const load = startLoad()
  try {
    if (!server.owned) throw new Error('This command empties its Redis. Unset REDIS_URL.')
    const results = await runAll({ server, load, workers }, plan, log)
    const machine = warning + (await about(server.name, plan.rounds, binary))
    const { verdict, details } = reportOf(machine, results)
    console.log(`${verdict}\n\n${details}`)
    if (values.json) await writeFile(values.json, toJson({ about: machine, details, results }))
  } finally {
    load.stop()
    await workers.remove()
    await server.stop()
  }
  log('done')
}

/** A finished run. */
interface Run {
  about: string
  /** The tables of its report: they need the latency of each request, which the file leaves out. */
  details: string
  results: Results
}

const toJson = (run: Run) =>
  `${JSON.stringify(run, (key, value) => (key === 'latencies' ? undefined : value), 2)}\n`

async function writePage(files: string[]) {
  const texts = await Promise.all(files.map((file) => readFile(file, 'utf8')))
  const runs: Run[] = texts.map((text) => JSON.parse(text))
  const results = runs.map(({ results }) => results) as [Results, ...Results[]]
  const verdict = verdictOf(
    runs.map(({ about }) => about),
    results,
  )
  const docs = new URL('../../docs/reference/', import.meta.url)
  await writeBetween(new URL('benchmarks.md', docs), 'performance', verdict)
  await writeBetween(new URL('RESULTS.md', import.meta.url), 'performance', runs[0]!.details)
  const picture = draw('What a decision costs', panelsOf(results[0]))
  await writeFile(new URL('performance.svg', docs), picture)
}

// On a signal exit at once: the watchdogs end all child processes.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
await main()
