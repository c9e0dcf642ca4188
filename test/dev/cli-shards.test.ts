/** `sluice shards` in a project, with three databases behind one bridge. */
import { type Bridge, type RunningRedis, startBridge, startRedis } from 'sluice-upstash-bridge'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { moveText } from '../../dev/shards/progress.ts'
import { statusText } from '../../dev/shards/status-text.ts'
import { moveKey, receiptOf } from '../../src/shards/move/places.ts'
import { createShards } from '../../src/shards/split-store.ts'
import { createTransport } from '../../src/store/upstash/transport.ts'
import { createUpstashStore } from '../../src/store/upstash/upstash.ts'
import { type CliProject, cliProject } from '../support/cli-project.ts'
import { NEW, OLD, subjectFrom } from '../support/moving.ts'
import { left, row, take } from '../support/sharded-redis.ts'

let project: CliProject
let redis: RunningRedis[]
let bridge: Bridge
let env: Record<string, string>

const configOf = (layouts: string) => `import { defineConfig } from 'sluice'
import { shards } from 'sluice/shards'
export default defineConfig({
  origin: 'zone',
  shards: shards(${layouts}),
  policies: [{ name: 'per-ip', limit: 3, window: '1h' }],
})
`
const MOVING = configOf("['eu-1', 'eu-2', 'eu-3'], { moveFrom: ['eu-1', 'eu-2'] }")
const MOVED = configOf("['eu-1', 'eu-2', 'eu-3']")

beforeAll(async () => {
  redis = await Promise.all(NEW.map(() => startRedis()))
  bridge = await startBridge({ redis: redis.map(({ url }, n) => ({ url, token: NEW[n]! })) })
  env = Object.fromEntries(
    NEW.flatMap((name) => {
      const suffix = name.replace('-', '_').toUpperCase()
      return [
        [`UPSTASH_REDIS_REST_URL_${suffix}`, bridge.url],
        [`UPSTASH_REDIS_REST_TOKEN_${suffix}`, name],
      ]
    }),
  )
  project = await cliProject()
})
afterAll(async () => {
  await project.remove()
  await bridge.close()
  await Promise.all(redis.map((one) => one.stop()))
})
beforeEach(async () => {
  await Promise.all(NEW.map((name) => send(name, 'FLUSHALL')))
  await project.write('sluice.config.ts', MOVING)
})

async function send(name: string, ...command: unknown[]) {
  const [answer] = await createTransport(bridge.url, name)([command], AbortSignal.timeout(10_000))
  if ('error' in answer!) throw new Error(answer.error)
  return answer!.result
}
const layout = (names: string[]) =>
  createShards(
    names.map((name) => ({
      name,
      store: createUpstashStore({ url: bridge.url, token: name, deadlineMs: 20_000 }),
    })),
  )
const sluice = (...args: string[]) => project.sluice(['shards', ...args], { env })
const keysAt = async (name: string) => (await send(name, 'KEYS', '*')) as string[]

/** Clients with one unit each: 5 that move from each old shard, and 5 that stay. */
async function charge() {
  const subjects = OLD.flatMap((from) =>
    Array.from({ length: 10 }, (_, n) => subjectFrom(from, n % 2 ? 'eu-3' : from)),
  )
  await layout(OLD).decide(subjects.map((subject) => take(row(subject))))
  return subjects
}

test('A whole move: count, move, report, and remove the marks.', { timeout: 120_000 }, async () => {
  const subjects = await charge()

  const dry = await sluice('move', '--dry-run')
  expect(dry).toMatchObject({ code: 0, stderr: '' })
  expect(dry.stdout).toBe('eu-1 > eu-3: 5 keys would move\neu-2 > eu-3: 5 keys would move\n')
  expect(await keysAt('eu-3')).toEqual([])
  expect(await keysAt('eu-1')).not.toContain(moveKey())

  const waiting = (await sluice('status')).stdout
  expect(waiting).toContain('\nThe move has not begun at eu-1, eu-2.\n10 keys are left to move')
  const moved = await sluice('move', '--from', 'eu-2,eu-1', '--to', 'eu-1, eu-2, eu-3')
  expect(moved).toMatchObject({ code: 0, stderr: '' })
  expect(moved.stdout).toMatch(/^10 keys have moved\. Nothing is left\.\nAfter a minute, remove/)
  expect((await sluice('move')).stdout).toMatch(/^0 keys have moved\./)

  const status = await sluice('status')
  expect(status.stdout).toMatch(/\n\nNothing is left to move\.\n$/)
  expect(status.stdout).toMatch(/^shard +keys +memory +load +left +moved\neu-1 +\d+ +[\d.]+ .B +/)
  const peek = { mode: 'peek' as const, limits: subjects.map((subject) => row(subject)) }
  expect(new Set(left(await layout(NEW).decide([peek])))).toEqual(new Set([2]))

  expect((await sluice('move', '--finish', '--from', 'eu-1,eu-2')).stderr).toContain(
    'still has "moveFrom"',
  )
  await project.write('sluice.config.ts', MOVED)
  expect((await sluice('move')).stderr).toContain('has no "moveFrom"')
  expect((await sluice('move', '--finish')).stderr).toContain('--finish needs --from')
  const finished = await sluice('move', '--finish', '--from', 'eu-1,eu-2')
  expect(finished.stdout).toBe('10 marks were removed. The move is finished.\n')
  expect(await keysAt('eu-1')).toHaveLength(5)
  expect(new Set(left(await layout(NEW).decide([peek])))).toEqual(new Set([2]))
})

test('The status shows a shard that is down, and the figures of the others.', async () => {
  await charge()
  const down = (name: string) =>
    project.sluice(['shards', 'status'], {
      env: { ...env, [`UPSTASH_REDIS_REST_URL_${name}`]: 'http://127.0.0.1:9' },
    })
  const old = await down('EU_2')
  expect(old.stdout).toMatch(/^eu-1 +10 .*\neu-2 +unreachable +- +- +- +-\neu-3 +0 /m)
  expect(old.stdout).toMatch(/^5 keys are left to move, and perhaps more at eu-2: npx sluice/m)
  expect(old.stderr).toBe('eu-2: unreachable: the connection failed\n')
  expect(old.code).toBe(1)

  expect((await sluice('move')).code).toBe(0)
  expect((await down('EU_2')).stdout).toContain('\nKeys may be left to move at eu-2.\n')
  const fresh = await down('EU_3')
  expect(fresh.stdout).toContain('\nNothing is left to move.\n')
  expect(fresh.code).toBe(1)
})

test('A move is not finished while keys are left.', async () => {
  await charge()
  await project.write('sluice.config.ts', MOVED)
  const { code, stderr } = await sluice('move', '--finish', '--from', 'eu-1,eu-2')
  expect(stderr).toBe('10 keys are left to move. Finish the move first.\n')
  expect(code).toBe(1)
})

test('Records at a new shard that would win stop a move before its beginning.', async () => {
  await charge()
  const subject = subjectFrom('eu-1', 'eu-3')
  await layout(NEW).decide([take(row(subject))])
  const { code, stderr } = await sluice('move')
  expect(stderr).toMatch(/^eu-3 holds 1 keys of clients that the old layout keeps elsewhere\./)
  expect(code).toBe(1)
  expect(await keysAt('eu-1')).not.toContain(moveKey())
  expect((await sluice('move', '--overwrite')).stdout).toMatch(/^10 keys have moved/)
  expect(left(await layout(NEW).decide([{ mode: 'peek', limits: [row(subject)] }]))).toEqual([3])
})

test('Clients move back with their quotas, over the marks of the first move.', async () => {
  const subject = subjectFrom('eu-2', 'eu-3')
  await layout(OLD).decide([take(row(subject))])
  await sluice('move')
  await layout(NEW).decide([take(row(subject))])
  await project.write(
    'sluice.config.ts',
    configOf("['eu-1', 'eu-2'], { moveFrom: ['eu-1', 'eu-2', 'eu-3'] }"),
  )
  expect((await sluice('move')).stdout).toMatch(/^1 keys have moved/)
  expect(left(await layout(OLD).decide([take(row(subject))]))).toEqual([0])
  await project.write('sluice.config.ts', MOVING)
  expect((await sluice('move')).stdout).toMatch(/^1 keys have moved/)
  expect(left(await layout(NEW).decide([{ mode: 'peek', limits: [row(subject)] }]))).toEqual([0])
})

test('--rate bounds the keys per second.', async () => {
  await charge()
  const startedAt = performance.now()
  expect((await sluice('move', '--rate', '5')).code).toBe(0)
  expect(performance.now() - startedAt).toBeGreaterThan(2000)
})

test('The receipts of a finished move expire within a minute.', async () => {
  const subject = subjectFrom('eu-1', 'eu-3')
  await layout(OLD).decide([take(row(subject))])
  await sluice('move')
  const [receipt] = (await keysAt('eu-3')).filter((key) => key.endsWith(':moved'))
  expect(receipt).toBe(receiptOf(`sluice:1:{${subject}}`))
  expect(Number(await send('eu-3', 'PTTL', receipt))).toBeLessThanOrEqual(60_000)
})

test.each([
  [[], 'Expected move or status'],
  [['drop'], 'Expected move or status'],
  [['move', '--rate', '0'], '--rate: expected a number above 0, got "0"'],
  [['move', '--from', 'eu-9,eu-2'], '--from: "eu-9" is not in the old list of sluice.config.ts'],
  [['move', '--to', 'eu-1,eu-2'], '--to: "eu-3" is missing, which sluice.config.ts has'],
  [['move', '--config', 'other.ts'], 'other.ts: the file does not exist'],
  [['status', '--to', 'eu-9'], 'Set UPSTASH_REDIS_REST_URL_EU_9, UPSTASH_REDIS_REST_TOKEN_EU_9'],
])('The arguments %j are refused.', async (args, message) => {
  const { code, stderr, stdout } = await sluice(...args)
  expect(stderr).toContain(message)
  expect(stderr.trim().split('\n')).toHaveLength(1)
  expect([code, stdout]).toEqual([1, ''])
})

test('Two names of one database, equal lists and a database that is down are errors.', async () => {
  const same = { ...env, UPSTASH_REDIS_REST_TOKEN_EU_3: 'eu-1' }
  const run = (env: Record<string, string>) => project.sluice(['shards', 'move'], { env })
  expect((await run(same)).stderr).toContain('eu-1 and eu-3 are one database')
  const down = { ...env, UPSTASH_REDIS_REST_URL_EU_2: 'http://127.0.0.1:9' }
  expect((await run(down)).stderr).toContain('eu-2: unreachable: the connection failed')
  await project.write('sluice.config.ts', configOf("['a', 'b'], { moveFrom: ['b', 'a'] }"))
  expect((await run(env)).stderr).toContain('The old and the new list are equal: a,b.')
})

test('The progress shows the share of the keys that were read.', () => {
  expect(moveText({ read: 50, total: 200, moved: 1234 }, 2)).toBe(
    `${'█'.repeat(6)}${'░'.repeat(18)} 25 %, 1,234 keys moved, 617 keys/s`,
  )
  expect(moveText({ read: 0, total: 0, moved: 0 }, 0)).toContain('100 %, 0 keys moved')
})

test('The status shows a dash for figures that a database does not report.', () => {
  const status = { name: 'eu-1', keys: 1, left: 0, marks: 0, replies: 0 }
  const text = (more: object) =>
    statusText([{ ...status, memory: undefined, load: undefined, ...more }], ['eu-1'])
  expect(text({})).toContain('eu-1      1       -     -     0      0')
  expect(text({ memory: 1_234_567, load: 12 })).toMatch(/1\.2 MB {2}12 commands\/s/)
  expect(text({ replies: 2 })).toContain('2 replies of idempotent calls are at the old shards')
})
