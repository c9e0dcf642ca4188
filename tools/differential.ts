/**
 * `npm run differential -- --against REF`: decides random requests with the package of a commit and with that of this folder, on one
 * Redis, and compares answers, decisions, log lines and records. Whoever restructures the path of a request runs it.
 */
import { isDeepStrictEqual, parseArgs } from 'node:util'
import { builtFolderOf, builtWorkingTree } from './differential/builds.ts'
import { createJudge, type Difference } from './differential/judge.ts'
import { loadSide } from './differential/sides.ts'
import { replaceTime } from './differential/time.ts'
import { startWorld } from './differential/world.ts'

const { values } = parseArgs({
  options: {
    against: { type: 'string' },
    requests: { type: 'string', default: '20000' },
    seed: { type: 'string', default: '1' },
    only: { type: 'string' },
    except: { type: 'string', multiple: true, default: [] },
  },
})
const { against: ref, only } = values
/** Changes on purpose. */
const exceptions = values.except.map((text) => new RegExp(text))
if (!ref) {
  console.error('Name the commit to compare with: npm run differential -- --against REF')
  process.exit(2)
}

const MOST_DIFFERENCES = 5
const ATTEMPTS = 3
/** So many configurations without a part show that no configuration has it. */
const MOST_WITHOUT = 10_000

const folders = [builtFolderOf(ref), builtWorkingTree()]
const world = await startWorld()
replaceTime()
const [old, changed] = [
  await loadSide('old', folders[0]!, false),
  await loadSide('new', folders[1]!, true),
]
const judge = createJudge(old, changed, world)

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

/** What has changed between the first deployment and each other one. */
const allChangesOf = ({ found }: Difference) =>
  found.slice(1).map((one) => changesOf(found[0], one))

function print(seed: number, difference: Difference) {
  const { drawn, cases = [], outages } = difference
  console.log(`\nA difference, with --seed ${seed}:`)
  const changes = allChangesOf(difference)
  changes.forEach((lines, index) => {
    if (lines.length > 0) console.log(`\n${['new', 'old beside new'][index]}:`)
    for (const line of lines) console.log(line)
  })
  console.log('\nThe configuration:')
  console.dir(drawn, { depth: 9, maxArrayLength: 200 })
  if (outages?.length) console.log('\nOutages:', outages)
  const last = Math.max(
    ...changes.flat().map((line) => Number(/^\.answers\.(\d+)/.exec(line)?.[1] ?? -1)),
  )
  console.log('\nThe requests:')
  cases
    .slice(0, last < 0 ? undefined : last + 1)
    .forEach(({ at, isolate, text, address, leaves }, index) => {
      console.log(
        `${index}. ${at} to isolate ${isolate} from ${address}${leaves ? `, leaves after ${leaves} ms` : ''}: ${text}`,
      )
    })
}

const first = Number(values.seed)
let [differences, excepted] = [0, 0]
let without = 0
for (
  let seed = first;
  judge.counts.decided < Number(values.requests) && differences < MOST_DIFFERENCES;
  seed++
) {
  const before = judge.counts.decided
  let difference: Difference | undefined
  // Redis ends records by its own clock, so a busy machine may make a difference. It does not make one each time.
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    difference = await judge.differenceOf(seed, attempt, only)
    if (!difference) break
  }
  without = judge.counts.decided === before ? without + 1 : 0
  if (only && without > MOST_WITHOUT)
    throw new Error(`No valid configuration has the part ${only}.`)
  if (!difference) continue
  const changes = allChangesOf(difference).flat()
  if (changes.every((line) => exceptions.some((one) => one.test(line)))) {
    excepted += 1
    continue
  }
  differences += 1
  print(seed, difference)
}

const { counts, statuses, hosts, leftOut } = judge
const listed = (counted: Map<string, number>, word: string) =>
  [...counted]
    .sort()
    .map(([name, count]) => `${count} ${word} ${name}`)
    .join(', ')
console.log(
  `${counts.decided} requests, ${counts.configs} configurations, ${counts.invalid} invalid ones: ${listed(statuses, 'of')}; ${listed(hosts, 'by')}`,
)
for (const [field, name] of leftOut.fields) {
  console.log(`Left out, because only the side ${name} refuses it: ${field}`)
}
if (excepted > 0) console.log(`${excepted} configurations with nothing but excepted differences.`)
console.log(differences === 0 ? `Equal to ${ref}.` : `${differences} differences.`)
await world.close()
process.exit(differences === 0 ? 0 : 1)
