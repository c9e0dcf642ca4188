/** Decides random requests with two sides, and compares what comes of them. */
import { isDeepStrictEqual } from 'node:util'
import { createRandom } from '../bench/random.ts'
import { bindingsOf, type Drawn, drawConfig, durableStore, featuresOf, partsOf } from './configs.ts'
import { drawFrom } from './draw.ts'
import type { Answer, Limiter } from './hosts.ts'
import { LeftOut, problemsOf } from './left-out.ts'
import { startObjects } from './objects.ts'
import { type Case, drawCases, drawOutages, type Outage, requestOf } from './requests.ts'
import type { Played, Side } from './side.ts'
import { runBy, VirtualTime } from './time.ts'
import { NUMBER, type Scene, type World } from './world.ts'

/** Requests to the limiter of one configuration. */
const PER_CONFIG = 40
const START = Date.UTC(2026, 10, 24, 12)
/** After this time of quiet all that follows from the requests has been done, ms. */
const QUIET_MS = 10_000

export interface Difference {
  drawn: Drawn
  cases?: Case[]
  outages?: Outage[]
  found: unknown[]
}

/** Everything that is random in a run, with a seed. The ids of two runs differ in their number. */
function seedAll(seed: number, run: number) {
  Math.random = createRandom(seed)
  let count = 0
  crypto.randomUUID = () => `d1ffe4e${run}-0000-4000-8000-${String(count++).padStart(12, '0')}`
}

/** The value of a text that is JSON, whose members have no order. */
function read(text: string): unknown {
  try {
    return /^[[{]/.test(text) ? JSON.parse(text, comparable) : text
  } catch {
    return text
  }
}

/** A value as it is compared. */
function comparable(name: string, value: unknown): unknown {
  // The digests of a configuration, which a command of the same version compares with its own.
  if (name === 'deployed') return undefined
  if (value instanceof Map) return [...value]
  return typeof value === 'string' ? read(value) : value
}

/** A result without random ids: which of two requests in one call gets its id first means nothing. */
const withoutIds = <T>(result: T): T =>
  JSON.parse(
    JSON.stringify(result, comparable).replaceAll(/d1ffe4e\d(-0000-4000-8000-\d{12}|00\w*)/g, 'id'),
  )

async function answerOf(limiter: Limiter, one: Case, number: number, env: object): Promise<Answer> {
  const waits: Promise<unknown>[] = []
  const client = new AbortController()
  const request = requestOf(one, client.signal)
  request.headers.set(NUMBER, String(number))
  Object.defineProperty(request, 'cf', { value: one.cf })
  const leaving =
    one.leaves === undefined ? undefined : setTimeout(() => client.abort(), one.leaves)
  const { address, response: respond } = one
  const waitUntil = (promise: Promise<unknown>) => void waits.push(promise)
  const { decided, response } = await limiter({ request, address, env, waitUntil, respond })
  const body = await response.text()
  clearTimeout(leaving)
  // A later promise may be added while an earlier one settles.
  for (let index = 0; index < waits.length; index += 1) await waits[index]!.catch(() => {})
  const { status, headers } = response
  // The length of a body changes with its form.
  const fields = [...headers].filter(([name]) => body === '' || name !== 'content-length')
  return { decided, status, headers: fields, body }
}

export function createJudge(old: Side, changed: Side, world: World) {
  const sides = [old, changed]
  /** Two isolates that share the records. While a deployment rolls out, they have different code. */
  const deployments = [
    [old, old],
    [changed, changed],
    [old, changed],
  ]
  const features = featuresOf((name) => sides.map((side) => side.exports(name)))
  const leftOut = new LeftOut(sides)

  const log: string[] = []
  for (const name of ['log', 'warn', 'error'] as const) {
    const print = console[name]
    console[name] = (...texts) => (world.scene ? void log.push(texts.join(' ')) : print(...texts))
  }

  /** Takes requests through the isolates of a deployment. */
  async function play(isolates: Limiter[], scene: Scene) {
    const { time, cases, env } = scene
    const answerInTime = async (one: Case, index: number) => {
      await time.sleep(one.at - time.now)
      const limiter = isolates[one.isolate]!
      return answerOf(limiter, one, index, env).catch((error) => ({ error: String(error) }))
    }
    return runBy(time, async () => {
      const answers = await Promise.all(cases.map(answerInTime))
      await time.sleep(QUIET_MS)
      return answers
    })
  }

  const counts = { decided: 0, configs: 0, invalid: 0 }
  const statuses = new Map<string, number>()
  const hosts = new Map<string, number>()
  const add = (to: Map<string, number>, name: string, count = 1) =>
    to.set(name, (to.get(name) ?? 0) + count)

  /** The outcome of the requests of a seed in each deployment. */
  async function playAll(drawn: Drawn, cases: Case[], seed: number, attempt: number) {
    const start = START + seed * 3_600_000
    const outages = drawOutages(drawFrom(createRandom(seed + 0.5)), cases)
    const found: Played[] = []
    for (const [run, deployment] of deployments.entries()) {
      const namespace = `${deployment.map(({ name }) => name).join('-')}-${seed}-${attempt}`
      const isolates = deployment.map((side) => side.create(drawn, namespace))
      for (const { ready } of isolates) await ready
      const time = new VirtualTime(start)
      const objects = startObjects(deployment[0]!.Objects, { time, cases, outages })
      const env = { ...world.env, ...bindingsOf(drawn), SLUICE_SUBJECT: objects.binding }
      world.scene = { time, env, cases, outages }
      seedAll(seed, run)
      try {
        const answers = await play(isolates, world.scene)
        const records =
          drawn.store === durableStore
            ? await runBy(time, () => objects.records(namespace))
            : await world.recordsOf(namespace)
        found.push(withoutIds({ answers, log: log.splice(0), records }))
      } finally {
        world.scene = undefined
      }
    }
    return { found, outages }
  }

  return {
    counts,
    statuses,
    hosts,
    leftOut,

    /**
     * The difference of the two sides with the configuration and the requests of a seed.
     * @param only the name of a part that the configuration must have
     */
    async differenceOf(
      seed: number,
      attempt: number,
      only: string | undefined,
    ): Promise<Difference | undefined> {
      const draw = drawFrom(createRandom(seed))
      const drawn = drawConfig(draw, features)
      if (only && !partsOf(drawn).has(only)) return undefined
      leftOut.from(drawn)
      const [before, after] = sides.map((side) => problemsOf(side, drawn))
      if (before || after) {
        counts.invalid += 1
        return isDeepStrictEqual(before, after) ? undefined : { drawn, found: [before, after] }
      }
      const cases = drawCases(draw, drawn, PER_CONFIG, START + seed * 3_600_000)
      const { found, outages } = await playAll(drawn, cases, seed, attempt)
      counts.configs += 1
      counts.decided += cases.length
      add(hosts, drawn.host, cases.length)
      for (const answer of found[0]!.answers) {
        add(statuses, 'error' in answer ? 'error' : String(answer.status))
      }
      return found.every((one) => isDeepStrictEqual(one, found[0]))
        ? undefined
        : { drawn, cases, outages, found }
    },
  }
}
