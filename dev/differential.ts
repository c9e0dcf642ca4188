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
import { type Drawn, drawConfig, VARIABLES } from './differential/configs.ts'
import { drawFrom } from './differential/draw.ts'
import { type Case, drawCases, drawOutages } from './differential/requests.ts'
import { type Limiter, loadSide, type Side } from './differential/sides.ts'
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
const sides = [await loadSide('old', folder), await loadSide('new', root)]
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

/** The answer to a request, with all that follows from it. */
async function answerOf(limiter: Limiter, one: Case, number: number, env: object) {
  const waits: Promise<unknown>[] = []
  const waitUntil = (promise: Promise<unknown>) => void waits.push(promise)
  const request = one.request()
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

/** Takes requests through one side. */
async function play(limiter: Limiter, scene: Scene, seed: number) {
  const { time, cases, env } = scene
  seedAll(seed)
  const answerInTime = async (one: Case, index: number) => {
    await time.sleep(one.at - time.now)
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

/** The limiter of a side. For an invalid configuration its problems: their order means nothing. */
function limiterOf(side: Side, drawn: Drawn, namespace: string): Limiter | string {
  try {
    return side.create(drawn, namespace)
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
  const start = START + seed * 3_600_000
  const namespaces = sides.map(({ name }) => `${name}-${seed}-${attempt}`)
  const limiters = sides.map((side, index) => limiterOf(side, drawn, namespaces[index]!))
  if (limiters.some((limiter) => typeof limiter === 'string')) {
    invalid += 1
    return isDeepStrictEqual(limiters[0], limiters[1])
      ? undefined
      : { given: drawn, found: limiters }
  }
  const cases = drawCases(draw, drawn, PER_CONFIG, start)
  const outages = drawOutages(draw, cases)
  const env = { ...world.env, ...VARIABLES, ...drawn.bindings }
  const found = []
  for (const [index, limiter] of limiters.entries()) {
    const scene = { time: new VirtualTime(start), env, cases, outages }
    const played = await play(limiter as Limiter, scene, seed)
    found.push(withoutIds({ ...played, records: await world.recordsOf(namespaces[index]!) }))
  }
  configs += 1
  decided += cases.length
  for (const answer of found[0]!.answers) {
    const status = 'error' in answer ? 'error' : String(answer.status)
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
  }
  return isDeepStrictEqual(found[0], found[1])
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
  for (const line of changesOf(found[0], found[1])) console.log(line)
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
