/**
 * `npm run differential -- --against REF`: decides random requests with the code of a commit and with this tree, on one Redis, and
 * compares answers, decisions, log lines and records. Whoever restructures the path of a request runs it.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isDeepStrictEqual, parseArgs } from 'node:util'
import { createRandom } from '../bench/random.ts'
import { bindingsOf, type Drawn, drawConfig, VARIABLES } from './differential/configs.ts'
import { drawFrom } from './differential/draw.ts'
import { type Case, drawCases, drawOutages, requestOf } from './differential/requests.ts'
import type { Answer, Limiter, Played, Side } from './differential/side.ts'
import { loadSide } from './differential/sides.ts'
import { replaceTime, runBy, VirtualTime } from './differential/time.ts'
import { NUMBER, type Scene, startWorld } from './differential/world.ts'

const { values } = parseArgs({
  options: {
    against: { type: 'string' },
    requests: { type: 'string', default: '20000' },
    seed: { type: 'string', default: '1' },
  },
})
const { against: ref } = values
if (!ref) {
  console.error('Name the commit to compare with: npm run differential -- --against REF')
  process.exit(2)
}

/** Requests to the limiter of one configuration. */
const PER_CONFIG = 40
const MOST_DIFFERENCES = 5
const START = Date.UTC(2026, 10, 24, 12)

const root = fileURLToPath(new URL('..', import.meta.url))
const git = (...args: string[]) => execFileSync('git', ['-C', root, ...args])
const temporary = mkdtempSync(join(tmpdir(), 'sluice-differential-'))
const folder = join(temporary, 'tree')
git('worktree', 'add', '--quiet', '--detach', folder, ref)
symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
const world = await startWorld()
replaceTime()
const [old, changed] = [await loadSide('old', folder), await loadSide('new', root)]
const sides = [old, changed]
/** Two isolates that share the records. While a deployment rolls out, they have different code. */
const deployments = [
  [old, old],
  [changed, changed],
  [old, changed],
]
const hasFeature = (name: string) => sides.every(({ features }) => features.has(name))

const log: string[] = []
for (const name of ['log', 'warn', 'error'] as const) {
  const print = console[name]
  console[name] = (...texts) => (world.scene ? void log.push(texts.join(' ')) : print(...texts))
}

/** Everything that is random in a run, with a seed. */
function seedAll(seed: number) {
  Math.random = createRandom(seed)
  let count = 0
  crypto.randomUUID = () => `00000000-0000-4000-8000-${String(count++).padStart(12, '0')}`
}

/** A result without the numbers of its random ids: which of two requests in one call gets its id first means nothing. */
const withoutIds = <T>(result: T): T =>
  JSON.parse(JSON.stringify(result).replaceAll(/(?<=-4000-8000-)\d{12}/g, ''))

async function answerOf(limiter: Limiter, one: Case, number: number, env: object): Promise<Answer> {
  const waits: Promise<unknown>[] = []
  const waitUntil = (promise: Promise<unknown>) => void waits.push(promise)
  const request = requestOf(one)
  request.headers.set(NUMBER, String(number))
  Object.defineProperty(request, 'cf', { value: one.cf })
  let decided: object | undefined
  let answer: Response
  if ('fetch' in limiter) {
    answer = await limiter.fetch(request, env, {
      waitUntil,
      passThroughOnException() {},
      props: {},
    })
  } else {
    const runtime = { env, remoteAddress: one.address, waitUntil }
    const { decision, allowed, response, finish } = await limiter.check(request, runtime)
    decided = { decision, allowed }
    answer = response ?? finish(await one.response())
  }
  const body = await answer.text()
  // A later promise may be added while an earlier one settles.
  for (let index = 0; index < waits.length; index += 1) await waits[index]!.catch(() => {})
  const { status, headers } = answer
  return { decided, status, headers: [...headers], body }
}

/** Takes requests through the isolates of a deployment. */
async function play(
  isolates: Limiter[],
  scene: Scene,
  seed: number,
): Promise<Omit<Played, 'records'>> {
  const { time, cases, env } = scene
  seedAll(seed)
  const answerInTime = async (one: Case, index: number) => {
    await time.sleep(one.at - time.now)
    const limiter = isolates[one.isolate]!
    return answerOf(limiter, one, index, env).catch((error) => ({ error: String(error) }))
  }
  world.scene = scene
  try {
    return {
      answers: await runBy(time, () => Promise.all(cases.map(answerInTime))),
      log: log.splice(0),
    }
  } finally {
    world.scene = undefined
  }
}

/** The problems of a configuration, in an order of their own. */
function problemsOf(side: Side, drawn: Drawn): string | undefined {
  try {
    side.create(drawn, 'unused')
    return undefined
  } catch (error) {
    return (error as Error).message.split('\n').sort().join('\n')
  }
}

/** The values that differ, with their paths. */
function changesOf(old: unknown, changed: unknown, path = ''): string[] {
  if (isDeepStrictEqual(old, changed)) return []
  if (Object(old) !== old || Object(changed) !== changed) {
    return [`${path}: ${JSON.stringify(old)} is now ${JSON.stringify(changed)}`]
  }
  const [before, after] = [old, changed] as Record<string, unknown>[]
  const names = new Set([...Object.keys(before!), ...Object.keys(after!)])
  return [...names].flatMap((name) => changesOf(before![name], after![name], `${path}.${name}`))
}

interface Difference {
  given: object
  found: unknown[]
}

let [decided, configs, invalid, differences] = [0, 0, 0, 0]
const statuses = new Map<string, number>()

/** The difference of the two sides with the configuration and the requests of a seed. */
async function differenceOf(seed: number, attempt: number): Promise<Difference | undefined> {
  const draw = drawFrom(createRandom(seed))
  const drawn = drawConfig(draw, hasFeature)
  old.since?.restrict(drawn)
  const start = START + seed * 3_600_000
  const [before, after] = sides.map((side) => problemsOf(side, drawn))
  if (before || after) {
    invalid += 1
    return before === after ? undefined : { given: drawn, found: [before, after] }
  }
  const cases = drawCases(draw, drawn, PER_CONFIG, start)
  for (const one of cases) one.text = old.since?.restrictRequest(one.text, drawn) ?? one.text
  const outages = drawOutages(draw, cases)
  const env = { ...world.env, ...VARIABLES, ...bindingsOf(drawn) }
  const found: Played[] = []
  for (const deployment of deployments) {
    const namespace = `${deployment.map(({ name }) => name).join('-')}-${seed}-${attempt}`
    const isolates = deployment.map((side) => side.create(drawn, namespace))
    const scene = { time: new VirtualTime(start), env, cases, outages }
    const played = await play(isolates, scene, seed)
    const result = withoutIds({ ...played, records: await world.recordsOf(namespace) })
    found.push(old.since?.restrictResult(result, drawn) ?? result)
  }
  configs += 1
  decided += cases.length
  for (const answer of found[0]!.answers) {
    const status = 'error' in answer ? 'error' : String(answer.status)
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
  }
  return found.every((one) => isDeepStrictEqual(one, found[0]))
    ? undefined
    : { given: { drawn, cases, outages }, found }
}

const first = Number(values.seed)
for (
  let seed = first;
  decided < Number(values.requests) && differences < MOST_DIFFERENCES;
  seed++
) {
  let difference: Difference | undefined
  // Redis ends records by its own clock, so a machine that stops for a second may make a difference. It does not make it twice.
  for (let attempt = 0; attempt < 2; attempt += 1) {
    difference = await differenceOf(seed, attempt)
    if (!difference) break
  }
  if (!difference) continue
  differences += 1
  const { given, found } = difference
  console.log(`\nA difference, with --seed ${seed}:`)
  console.dir(given, { depth: 9, maxArrayLength: 200 })
  found.slice(1).forEach((one, index) => {
    const lines = changesOf(found[0], one)
    if (lines.length > 0) console.log(`\n${['new', 'old beside new'][index]}:`)
    for (const line of lines) console.log(line)
  })
}

const counts = [...statuses].sort().map(([status, count]) => `${count} of ${status}`)
console.log(
  `${decided} requests, ${configs} configurations, ${invalid} invalid ones: ${counts.join(', ')}`,
)
console.log(differences === 0 ? `Equal to ${ref}.` : `${differences} differences.`)
git('worktree', 'remove', '--force', folder)
rmSync(temporary, { recursive: true })
await world.close()
process.exit(differences === 0 ? 0 : 1)
