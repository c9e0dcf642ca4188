/**
 * `npm run differential -- --against REF`: decides random requests with the code of a commit and with this tree, on one Redis, and
 * compares decisions, responses and records. Whoever restructures the path of a request runs it.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { isDeepStrictEqual, parseArgs } from 'node:util'
import { startBridge, startRedis } from 'sluice-upstash-bridge'
import { createRandom } from '../bench/random.ts'
import type { Sluice } from '../src/hosts/app/sluice.ts'
import { type Case, type Fault, randomCases, randomConfig } from './differential/cases.ts'

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
const PER_CONFIG = 25
/** How long a slow call takes, and a limiter waits, ms. No other call may take so long, also on a busy machine. */
const [SLOW_MS, DEADLINE_MS] = [560, 500]

const root = fileURLToPath(new URL('..', import.meta.url))
const git = (...args: string[]) => execFileSync('git', ['-C', root, ...args])

/** The code of one side. */
async function load(folder: string) {
  const from = (path: string) => import(pathToFileURL(join(folder, 'src', path)).href)
  const { createSluice } = await from('hosts/app/sluice.ts')
  const names = {
    bans: 'bans',
    concurrency: 'concurrency',
    headerSets: 'header-sets',
    leases: 'leases',
    slidingLog: 'sliding-log',
  }
  const use: object[] = []
  for (const [name, path] of Object.entries(names)) {
    if (!existsSync(join(folder, 'src/features', path))) continue // an older commit has it in the core
    use.push((await from(`features/${path}/index.ts`))[name]())
  }
  return (config: object): Sluice => createSluice({ ...config, use })
}

const folder = join(mkdtempSync(join(tmpdir(), 'sluice-differential-')), 'tree')
git('worktree', 'add', '--quiet', '--detach', folder, ref)
symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
const redis = await startRedis()
const bridge = await startBridge({ redis: redis.url, token: 'a-local-token' })

const realFetch = fetch
let fault: Fault = 'none'
globalThis.fetch = async (input, init) => {
  if (fault === 'none') return realFetch(input, init)
  if (fault === 'down') throw new TypeError('fetch failed')
  const response = await realFetch(input, init)
  if (fault === 'lost') throw new TypeError('terminated')
  if (fault === 'page') return new Response('<html>', { status: 502 })
  await new Promise((resolve) => setTimeout(resolve, SLOW_MS))
  return response
}
const start = Date.UTC(2026, 10, 24, 12)
let now = start
Date.now = () => now
const log: string[] = []
for (const name of ['log', 'warn', 'error'] as const) {
  const print = console[name]
  console[name] = (...texts) =>
    String(texts[0]).startsWith('{"event"') ? void log.push(texts.join(' ')) : print(...texts)
}

/** Everything that is random within a request, with a seed. */
function seedAll(seed: number) {
  const random = createRandom(seed)
  Math.random = random
  let count = 0
  crypto.randomUUID = () =>
    `00000000-0000-4000-8000-${String(seed * 100 + count++).padStart(12, '0')}`
}

async function command(...words: string[]): Promise<unknown> {
  const headers = { Authorization: `Bearer ${bridge.token}` }
  const response = await realFetch(bridge.url, {
    method: 'POST',
    headers,
    body: JSON.stringify(words),
  })
  const { result, error } = (await response.json()) as { result?: unknown; error?: string }
  if (error) throw new Error(error)
  return result
}

/** The records of a namespace, by their keys without it. */
async function recordsOf(namespace: string) {
  const records: Record<string, unknown> = {}
  for (const key of (await command('KEYS', `sluice:1:${namespace}:*`)) as string[]) {
    const type = await command('TYPE', key)
    records[key.replace(`:${namespace}:`, ':')] =
      type === 'string'
        ? await command('GET', key)
        : await command('ZRANGE', key, '0', '-1', 'WITHSCORES')
  }
  return records
}

/** Takes requests that arrive together through one side. */
async function answersOf(sluice: Sluice, cases: Case[], seed: number) {
  seedAll(seed)
  fault = cases[0]!.fault
  const answers = await Promise.all(cases.map((one) => answerOf(sluice, one)))
  fault = 'none'
  return { answers, log: log.splice(0) }
}

async function answerOf(sluice: Sluice, one: Case) {
  const waits: Promise<unknown>[] = []
  const env = {
    UPSTASH_REDIS_REST_URL: bridge.url,
    UPSTASH_REDIS_REST_TOKEN: bridge.token,
    SLUICE_SECRET: 'a-secret-of-both-sides',
  }
  const runtime = {
    env,
    remoteAddress: one.address,
    waitUntil: (promise: Promise<unknown>) => void waits.push(promise),
  }
  const { decision, allowed, response, finish } = await sluice.check(one.request(), runtime)
  const answer = response ?? finish(one.response())
  const body = await answer.text()
  // A later promise may be added while an earlier one settles.
  for (let index = 0; index < waits.length; index += 1) await waits[index]!.catch(() => {})
  const { status, headers } = answer
  return { decision, allowed, status, headers: [...headers], body }
}

interface Side {
  name: string
  create: (config: object) => Sluice
}

const sides: Side[] = [
  { name: 'old', create: await load(folder) },
  { name: 'new', create: await load(root) },
]
const outcomeOf = (create: Side['create'], config: object): Sluice | string => {
  try {
    return create(config)
  } catch (error) {
    return (error as Error).message
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

let [decided, configs, invalid, differences] = [0, 0, 0, 0]
const reasons = new Map<string, number>()

interface Difference {
  what: string
  given: object
  found: unknown[]
}

/** The first difference of the two sides with the configuration and the requests of a seed. */
async function differenceOf(seed: number, attempt: number): Promise<Difference | undefined> {
  const random = createRandom(seed)
  const config = {
    ...randomConfig(random),
    clientAddress: 'socket',
    clock: 'edge',
    deadline: DEADLINE_MS,
  }
  now = start + seed * 3_600_000
  const namespaces = sides.map(({ name }) => `${name}-${seed}-${attempt}`)
  const limiters = sides.map(({ create }, index) =>
    outcomeOf(create, { ...config, namespace: namespaces[index] }),
  )
  const texts = limiters.map((one) => (typeof one === 'string' ? one : undefined))
  if (texts[0] !== undefined || texts[1] !== undefined) {
    invalid += 1
    return texts[0] === texts[1] ? undefined : { what: 'the error', given: config, found: texts }
  }
  configs += 1
  for (let count = 0; count < PER_CONFIG; count += 1) {
    // Without batches each call is on its way by itself. Hashes of new keys are computed by threads.
    const cases = randomCases(random, config.batching && !config.hashKeys)
    now += cases[0]!.afterMs
    const found = []
    for (const limiter of limiters as Sluice[]) {
      found.push(await answersOf(limiter, cases, seed * PER_CONFIG + count))
    }
    decided += cases.length
    for (const { decision } of found[0]!.answers) {
      reasons.set(decision.reason, (reasons.get(decision.reason) ?? 0) + 1)
    }
    if (!isDeepStrictEqual(found[0], found[1])) {
      return { what: `the answer to request ${count + 1}`, given: { config, cases }, found }
    }
  }
  const records = await Promise.all(namespaces.map(recordsOf))
  const areEqual = isDeepStrictEqual(records[0], records[1])
  return areEqual ? undefined : { what: 'a record', given: config, found: records }
}

for (let seed = Number(values.seed); decided < Number(values.requests) && differences < 5; seed++) {
  let difference: Difference | undefined
  // A machine that stops for longer than a deadline makes a difference. It does not make it three times.
  for (let attempt = 0; attempt < 3; attempt += 1) {
    difference = await differenceOf(seed, attempt)
    if (!difference) break
  }
  if (!difference) continue
  differences += 1
  const { what, given, found } = difference
  console.log(`\n${what} differs, with --seed ${seed}:`)
  console.dir(given, { depth: 8 })
  for (const line of changesOf(found[0], found[1])) console.log(line)
}

const counts = [...reasons].map(([reason, count]) => `${reason} ${count}`).join(', ')
console.log(`${decided} requests, ${configs} configurations, ${invalid} invalid ones: ${counts}`)
console.log(differences === 0 ? `Equal to ${ref}.` : `${differences} differences.`)
git('worktree', 'remove', '--force', folder)
await bridge.close()
await redis.stop()
process.exit(differences === 0 ? 0 : 1)
