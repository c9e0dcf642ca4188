import { createHash } from 'node:crypto'
import { afterEach, beforeEach, expect, type TestContext, test, vi } from 'vitest'
import { type Bridge, startBridge } from '../src/index.ts'
import { slotOf } from '../src/slot.ts'
import { type Admin, startAdmin } from './cluster-admin.ts'
import { type Answer, Traffic, until } from './traffic.ts'

vi.setConfig({ testTimeout: 120_000 })

/** Time after which a node that does not respond counts as failed, in ms. */
const NODE_TIMEOUT = 1500
const LIMIT = 30

/** A limit: counts each call, and returns the count if it is admitted, or the negative count. */
const SCRIPT = `#!lua flags=allow-key-locking
local n = redis.call('INCR', KEYS[1])
if n > ${LIMIT} then return -n end
return n`
const SHA = createHash('sha1').update(SCRIPT).digest('hex')

let cluster: Admin
let bridge: Bridge
let traffic: Traffic | undefined
beforeEach(async () => {
  cluster = await startAdmin(NODE_TIMEOUT)
  bridge = await startBridge({ cluster: cluster.urls, timeout: 20_000 })
})
afterEach(async () => {
  await traffic?.stop()
  await bridge?.close()
  await cluster?.stop()
})

const call = (key: string) => ['evalsha', SHA, 1, key]

async function send(...command: unknown[]) {
  const headers = { authorization: 'Bearer dev' }
  const init = { method: 'POST', headers, body: JSON.stringify(command) }
  return (await (await fetch(bridge.url, init)).json()) as { result?: unknown }
}

/** Each status is 200, or 503 with an error that says that the command may have run. */
function expectDeclared(answers: Answer[]) {
  const others = answers.filter(({ status }) => status !== 200)
  expect(others.filter(({ status }) => status !== 503)).toEqual([])
  expect(others.every(({ error }) => error?.startsWith('ERR Redis '))).toBe(true)
}

/** Compares the counts of the calls with those in the cluster. */
async function tally(keys: string[], answers: Answer[]) {
  let [lost, twice, over] = [0, 0, 0]
  for (const key of keys) {
    const own = answers.filter((answer) => answer.key === key)
    const acknowledged = own.filter(({ status }) => status === 200).length
    const kept = Number((await send('get', key)).result ?? 0)
    lost += Math.max(0, acknowledged - kept)
    twice += Math.max(0, kept - own.length)
    const admitted = own.filter(({ result }) => result !== undefined && result > 0).length
    over += Math.max(0, admitted - LIMIT - Math.max(0, acknowledged - kept))
  }
  return { lost, twice, over }
}

async function report(context: TestContext, answers: Answer[], figures: Record<string, number>) {
  const failed = answers.filter(({ status }) => status !== 200).length
  const longest = Math.round(Math.max(...answers.map(({ sent, received }) => received - sent)))
  const all = { requests: answers.length, failed, 'longest wait in ms': longest, ...figures }
  await context.annotate(JSON.stringify(all))
}

test('A slot that moves at 200 requests a second loses no call, and no call fails.', async (context) => {
  const [tag = ''] = cluster.keysOf(0)
  const slot = slotOf(tag)
  const keys = Array.from({ length: 50 }, (_, index) => `${index}{${tag}}`)
  await send('eval', SCRIPT, 1, keys[0])
  await send('del', keys[0])
  traffic = new Traffic(bridge, 200, keys, call)
  await until(() => expect(traffic!.answers.length).toBeGreaterThan(100))
  for (const [from, to] of [
    [0, 1],
    [1, 2],
  ] as const) {
    await cluster.beginMove(slot, from, to)
    while (await cluster.moveKeys(slot, from, to, 3)) {
      const before = traffic!.answers.length
      await until(() => expect(traffic!.answers.length).toBeGreaterThan(before + 10))
    }
    await cluster.endMove(slot, to)
  }
  const before = traffic!.answers.length
  await until(() => expect(traffic!.answers.length).toBeGreaterThan(before + 100))
  const answers = await traffic!.stop()
  expect(await cluster.ownerOf(slot, 0)).toBe(2)
  expect(answers.filter(({ status }) => status !== 200)).toEqual([])
  const figures = await tally(keys, answers)
  expect(figures).toEqual({ lost: 0, twice: 0, over: 0 })
  await report(context, answers, figures)
})

test('After the death of a master its replica serves, no call runs twice, and limits hold but for lost writes.', async (context) => {
  const keys = [0, 1, 2].flatMap((master) => cluster.keysOf(master, 10))
  await send('eval', SCRIPT, 1, keys[0])
  await send('del', keys[0])
  traffic = new Traffic(bridge, 200, keys, call)
  await until(() => expect(traffic!.answers.length).toBeGreaterThan(200))
  const pid = Number(/process_id:(\d+)/.exec(await cluster.info(0, 'server'))?.[1])
  process.kill(pid, 'SIGKILL')
  const [first = ''] = cluster.keysOf(0)
  // The cluster itself reports when the replica has taken over.
  const owner = () => cluster.ownerOf(slotOf(first), 1)
  await until(async () => expect(await owner()).toBe(3))
  const promoted = performance.now()
  const served = () =>
    traffic!.answers.find(
      ({ key, sent, status }) => key === first && status === 200 && sent > promoted - 100,
    )
  await until(() => expect(served()).toBeDefined())
  const answers = await traffic!.stop()
  expectDeclared(answers)
  // The other masters are not affected: calls for them do not wait for the failover.
  const elsewhere = answers.filter(({ key }) => cluster.keysOf(1, 10).includes(key))
  expect(elsewhere.filter(({ status }) => status !== 200)).toEqual([])
  const figures = await tally(keys, answers)
  expect(figures).toMatchObject({ twice: 0, over: 0 })
  const delay = Math.round(served()!.received - promoted)
  await report(context, answers, { ...figures, 'first answer after the promotion in ms': delay })
})

test('A master that hangs is replaced, and returns as a replica; calls that it received fail and do not run twice.', async (context) => {
  await bridge.close()
  bridge = await startBridge({ cluster: cluster.urls, timeout: 4000 })
  const keys = [0, 1, 2].flatMap((master) => cluster.keysOf(master, 10))
  await send('eval', SCRIPT, 1, keys[0])
  await send('del', keys[0])
  traffic = new Traffic(bridge, 100, keys, call)
  await until(() => expect(traffic!.answers.length).toBeGreaterThan(100))
  const pid = Number(/process_id:(\d+)/.exec(await cluster.info(0, 'server'))?.[1])
  const slot = slotOf(cluster.keysOf(0)[0]!)
  process.kill(pid, 'SIGSTOP')
  try {
    await until(async () => expect(await cluster.ownerOf(slot, 1)).toBe(3))
    const before = traffic!.answers.length
    await until(() => expect(traffic!.answers.length).toBeGreaterThan(before + 200))
  } finally {
    process.kill(pid, 'SIGCONT')
  }
  await until(async () => expect(await cluster.info(0, 'replication')).toContain('role:slave'))
  const answers = await traffic!.stop()
  expectDeclared(answers)
  const figures = await tally(keys, answers)
  expect(figures).toMatchObject({ twice: 0, over: 0 })
  await report(context, answers, figures)
})

test('In a pipeline only the commands for a master that hangs fail, and its replica serves them after the failover.', async () => {
  await bridge.close()
  const { urls } = cluster
  bridge = await startBridge({ cluster: urls, timeout: 20_000, pipelineTimeout: 2000 })
  const keys = [0, 1, 2].map((master) => cluster.keysOf(master)[0]!)
  const pipeline = async () => {
    const headers = { authorization: 'Bearer dev' }
    const body = JSON.stringify(keys.map((key) => ['eval', SCRIPT, 1, key]))
    const response = await fetch(`${bridge.url}/pipeline`, { method: 'POST', headers, body })
    return (await response.json()) as { result?: number; error?: string }[]
  }
  expect(await pipeline()).toEqual([{ result: 1 }, { result: 1 }, { result: 1 }])
  const pid = Number(/process_id:(\d+)/.exec(await cluster.info(0, 'server'))?.[1])
  process.kill(pid, 'SIGSTOP')
  try {
    const late = { error: 'ERR Redis did not respond within 2000 ms' }
    expect(await pipeline()).toEqual([late, { result: 2 }, { result: 2 }])
    await until(async () => expect((await pipeline())[0]!.result).toBeGreaterThan(0))
  } finally {
    process.kill(pid, 'SIGCONT')
  }
  const [first, ...others] = await pipeline()
  expect(first!.result).toBeLessThan(others[0]!.result!) // no failed command was sent again
})
