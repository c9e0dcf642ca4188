/** `npm run bench`: measures Sluice and other limiters, in turn, with the same Redis, bridge, workerd and load. */
import { writeFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { writeBetween } from '../dev/markers.ts'
import { openServer } from './server.ts'
import { startLoad } from './stack/load.ts'
import { about } from './stack/report/about.ts'
import { databasesText } from './stack/report/databases.ts'
import { isolatesText } from './stack/report/isolates.ts'
import { legsText } from './stack/report/legs.ts'
import { overloadText } from './stack/report/overload.ts'
import { panelsOf } from './stack/report/panels.ts'
import { parallelText } from './stack/report/parallel.ts'
import { profileText } from './stack/report/profile.ts'
import { redisText } from './stack/report/redis.ts'
import { shieldText } from './stack/report/shield.ts'
import { draw } from './stack/report/svg.ts'
import { targetsText } from './stack/report/targets.ts'
import { WORKLOAD_LEGEND, workloadTable } from './stack/report/workload.ts'
import type { Results } from './stack/results.ts'
import { type Plan, quick, runAll, thorough } from './stack/suite.ts'
import { pinned } from './stack/workerd.ts'
import { buildWorkers } from './stack/workers.ts'
import { workloads } from './stack/workloads.ts'

const USAGE = `Measures the whole stack (Worker, bridge, Redis) for Sluice and other limiters. Prints latency,
HTTP calls, billed commands and CPU as Markdown tables.

  npm run bench -- [options]

  --quick         one short round for a first impression, less than a minute
  --rounds N      number of rounds, 1 to 40 (default 5, about 12 minutes)
  --only ID,…     run only these parts: ${workloads.map(({ id }) => id).join(', ')},
                  exactness, waits, greedy, isolates, soak, parallel, shield, databases,
                  profile, redis, overload (or overload-SCENARIO)
  --soak          run only the soak test, 60 s
  --workerd PATH  use another workerd binary
  --json FILE     write the results to a file
  --write         write the tables and the picture to docs/reference/benchmarks.md
  --help          show this text`

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    rounds: { type: 'string' },
    only: { type: 'string' },
    soak: { type: 'boolean', default: false },
    workerd: { type: 'string' },
    json: { type: 'string' },
    write: { type: 'boolean', default: false },
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
  const began = Date.now()
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
    const text = reportOf(await about(server.name, plan.rounds, binary), results, !plan.only)
    console.log(text)
    if (values.write) await write(text, results)
    if (values.json) await writeFile(values.json, toJson(text, results))
  } finally {
    load.stop()
    await workers.remove()
    await server.stop()
  }
  log('done')
}

function reportOf(about: string, results: Results, all: boolean): string {
  const tables = workloads.flatMap((workload) => {
    const samples = results.workloads[workload.id]
    return samples ? [workloadTable(workload, samples)] : []
  })
  return [
    about,
    `### Targets\n\n${targetsText(results, all)}`,
    ...(tables.length > 0 ? [WORKLOAD_LEGEND] : []),
    ...tables,
    ...(results.exactness.length > 0 || results.soak ? [legsText(results)] : []),
    ...(results.profiles.length > 0 ? [profileText(results.profiles)] : []),
    ...(results.databases ? [databasesText(results.databases)] : []),
    ...(results.parallel ? [parallelText(results)] : []),
    ...(results.shield ? [shieldText(results.shield)] : []),
    ...(results.isolates.length > 0 ? [isolatesText(results.isolates)] : []),
    ...(results.overload?.length ? [overloadText(results.overload)] : []),
    ...(results.redis.length > 0 ? [redisText(results.redis)] : []),
  ].join('\n\n')
}

async function write(text: string, results: Results) {
  await writeBetween(
    new URL('../docs/reference/benchmarks.md', import.meta.url),
    'performance',
    text,
  )
  await writeFile(
    new URL('../docs/reference/performance.svg', import.meta.url),
    draw('What a decision costs', panelsOf(results)),
  )
}

/** The results as JSON, without the latency of each request. */
const toJson = (report: string, results: Results) =>
  `${JSON.stringify({ report, ...results }, (key, value) => (key === 'latencies' ? undefined : value), 2)}\n`

// On a signal exit at once: the watchdogs end all child processes.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
await main()
