/** Simulates one world in virtual time: isolates in several data centres, and one database. */

import type { StoreError } from '../../../src/core/base/errors.ts'
import type { Part } from '../../../src/core/base/part.ts'
import type { PolicyOptions } from '../../../src/core/config/options.ts'
import { parseConfig } from '../../../src/core/config/parse.ts'
import { connect } from '../../../src/core/connection/connection.ts'
import { withDeadline } from '../../../src/core/connection/deadline.ts'
import { decideEach } from '../../../src/core/decide/decide.ts'
import { createDenialCache } from '../../../src/core/decide/denial-cache.ts'
import type { LimiterParts } from '../../../src/core/decide/question.ts'
import { withFallback } from '../../../src/core/fallback/fallback.ts'
import { createLocalStore } from '../../../src/core/fallback/local.ts'
import { featuresOf, stagesOf } from '../../../src/core/feature.ts'
import type { Matched } from '../../../src/core/program/match.ts'
import { defaultFields, defaults } from '../../../src/features/defaults.ts'
import { createRandom, gapMs } from '../random.ts'
import type { BenchServer } from '../server.ts'
import { billed } from '../stack/measure.ts'
import { quantile } from '../statistics.ts'
import { createDatabase, type Database, type MasterLoad } from './database.ts'
import { startVirtualTime, type VirtualTime } from './time.ts'
import { createZipf, rttOf } from './traffic.ts'

export interface World {
  isolates: number
  colos: number
  /** Requests per second, over all isolates. */
  rps: number
  seconds: number
  /** Masters of a Redis Cluster. Without them there is one database. */
  masters?: number
}

/** The features that an isolate uses to save calls. */
export interface Way {
  name: string
  batching: boolean
  denialCache: boolean
  lease?: PolicyOptions['lease']
}

export interface Simulated extends World {
  way: string
  decisions: number
  /** HTTP calls and billed commands per decision. */
  calls: number
  billed: number
  /** Commands per second. */
  commands: number
  /** Requests admitted beyond a limit, in all. */
  over: number
  /** The share of the due requests that were not admitted. */
  under: number
  /** Latency of a decision, ms. */
  p50: number
  p99: number
  /** The load of each master, per second. */
  loads: MasterLoad[]
}

/** Number of tenants. Half of all requests are of tenants, which use all isolates; half are of clients near one data centre each. */
const TENANTS = 50
const START = 1_800_000_000_000
const WINDOW_MS = 1000

/** One decision of a simulation. */
export interface SimulatedDecision {
  /** `tenant-3` or `client-7`. */
  name: string
  allowed: boolean
  /** The time of the decision by the database, ms since the epoch. */
  at: number
  /** When the isolate asked, and when it knew the answer. */
  sent: number
  answered: number
}

/** @param onDecision gets each decision when it is answered */
export async function simulate(
  world: World,
  way: Way,
  server: BenchServer,
  onDecision: (decision: SimulatedDecision) => void = () => {},
): Promise<Simulated> {
  await server.send('FLUSHALL')
  const before = await billed(server)
  const time = startVirtualTime(START)
  try {
    const database = createDatabase(server, time, world.masters)
    const tally = createTally()
    const ask = createIsolates(world, way, database, time)
    const { isolates, colos, rps, seconds } = world
    const random = createRandom(1)
    const zipf = createZipf(TENANTS)
    const end = START + seconds * 1000
    const arrive = () => {
      const tenant = random() < 0.5 ? zipf(random) : undefined
      const client = Math.floor(random() * rps)
      // A client is near one data centre. Any of its isolates may receive the request.
      const near = (client % colos) + colos * Math.floor(random() * Math.floor(isolates / colos))
      const isolate = tenant === undefined ? near : Math.floor(random() * isolates)
      const sent = time.now()
      const name = tenant === undefined ? `client-${client}` : `tenant-${tenant}`
      void ask(isolate, tenant, name).then(({ allowed, at }) => {
        tally.add(tenant, allowed, at, time.now() - sent)
        onDecision({ name, allowed, at, sent, answered: time.now() })
      })
      const next = time.now() + gapMs(rps, random)
      if (next < end) time.at(next, arrive)
    }
    time.at(START, arrive)
    await time.run(end + 10_000)
    const { calls, runs } = database.count()
    // Adds one TIME per run. The simulation passes the time to the script; a real call reads the clock of the database.
    const commands = (await billed(server)) - before + runs
    const { decisions, ...figures } = tally.figures(limitOf(rps))
    return {
      ...world,
      way: way.name,
      decisions,
      calls: calls / decisions,
      billed: commands / decisions,
      commands: commands / seconds,
      loads: database.masters().map(({ runs, decisions }) => ({
        runs: runs / seconds,
        decisions: decisions / seconds,
      })),
      ...figures,
    }
  } finally {
    time.end()
  }
}

/** The limit of a tenant per second. A few tenants send far more requests, most send fewer. */
const limitOf = (rps: number) => Math.max(1, Math.round(rps / TENANTS))

/** The policies for tenants and for clients. The simulation makes the keys itself. */
export const policiesOf = (rps: number): [PolicyOptions, PolicyOptions] => [
  {
    name: 'per-tenant',
    algorithm: 'fixed-window',
    align: 'clock',
    limit: limitOf(rps),
    window: WINDOW_MS,
    key: 'global',
    deadline: '1s',
  },
  { name: 'per-client', limit: 100, window: '10s', deadline: '1s' },
]

function createIsolates(
  { isolates, colos, rps }: World,
  { batching, denialCache, lease }: Way,
  database: Database,
  time: VirtualTime,
) {
  const [perTenant, perClient] = policiesOf(rps)
  const config = parseConfig(
    {
      batching,
      policies: [{ ...perTenant, ...(lease && { lease }) }, perClient],
    },
    defaultFields,
  )
  const nameSubject = ([part]: Part[]) => part![1]!
  // A timer of workerd fires at a whole millisecond.
  const later = (ms: number, task: () => void) =>
    void time.at(Math.floor(time.now()) + ms, () => task())
  // Nothing fails in the simulation, so a log line is an error.
  const log = (...line: unknown[]) => {
    throw new Error(line.join(' '))
  }
  const stages = stagesOf({ config, log }, featuresOf(config, defaults()))
  const all = Array.from({ length: isolates }, (_, isolate): LimiterParts => {
    const far = database.from(rttOf(isolate % colos))
    const cache = denialCache ? createDenialCache() : undefined
    const onStoreError = (error: StoreError) => {
      throw error
    }
    const fallback = { local: createLocalStore(), denialCache: cache, onStoreError, onRefund() {} }
    const connection = connect(far, { batching: config.batching, later, onOpen: log })
    const layered = stages.layer?.(connection) ?? connection
    const store = withFallback(withDeadline(layered), fallback)
    return { store, nameSubject, denialCache: cache, onStoreError }
  })
  const waitUntil = () => {}
  return async (isolate: number, tenant: number | undefined, name: string) => {
    const policy = config.policies[tenant === undefined ? 1 : 0]!
    const matched: Matched = {
      policies: [{ terms: policy, partitionKey: [['key', name]], cost: 1 }],
    }
    const [outcome] = await decideEach([{ matched }], all[isolate]!, { waitUntil })
    const { allowed, decidedAt: at } = outcome!.decision
    return { allowed, at: at! }
  }
}

/** Counts the requests and the admitted requests of each tenant and window. */
function createTally() {
  const windows = new Map<string, { requests: number; admitted: number }>()
  const waits: number[] = []
  return {
    add(tenant: number | undefined, allowed: boolean, at: number, waited: number) {
      waits.push(waited)
      if (tenant === undefined) return
      const key = `${tenant} ${Math.floor(at / WINDOW_MS)}`
      const window = windows.get(key) ?? { requests: 0, admitted: 0 }
      window.requests += 1
      if (allowed) window.admitted += 1
      windows.set(key, window)
    },
    figures(limit: number) {
      let [over, due, admitted] = [0, 0, 0]
      for (const window of windows.values()) {
        over += Math.max(0, window.admitted - limit)
        due += Math.min(limit, window.requests)
        admitted += Math.min(limit, window.admitted)
      }
      const sorted = Float64Array.from(waits)
      return {
        decisions: waits.length,
        over,
        under: 1 - admitted / due,
        p50: quantile(sorted, 0.5),
        p99: quantile(sorted, 0.99),
      }
    },
  }
}
