import { request as httpRequest, type IncomingMessage } from 'node:http'
import { json } from 'node:stream/consumers'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { PolicyOptions } from '../../src/core/config/options.ts'
import { type Policy, parseConfig } from '../../src/core/config/parse.ts'
import type { StoreReply } from '../../src/core/connection/store.ts'
import { defaultFields } from '../../src/features/defaults.ts'
import { startWorker } from '../../tools/worker.ts'
import type { ModelRequest } from '../model/model.ts'
import { bundled } from '../support/bundled.ts'
import { type Call, Undecided, unexplained } from '../support/checker.ts'
import { useDatabase } from '../support/database.ts'
import { isLong } from '../support/long.ts'
import { useObjects } from '../support/objects.ts'
import storeWorker from './store-worker.ts'

const objects = process.env.TEST_STORE === 'durable-objects' ? useObjects() : undefined
const database = objects ? undefined : useDatabase()
type Send = (path: string, body: string) => Promise<StoreReply>
let send: Send = async (path, body) => {
  if (objects) return objects.post(path === '/' ? '/alone' : '/shared', body)
  const request = new Request(`http://worker${path}`, { method: 'POST', body })
  return (await storeWorker.fetch(request, database!.env as never, { waitUntil() {} })).json()
}

// `npm test` calls the Worker in this process. test/faults/batching.test.ts has the batches of workerd.
if (isLong && !objects) {
  let worker: Awaited<ReturnType<typeof startWorker>>
  beforeAll(async () => {
    worker = await startWorker(await bundled('test/script/store-worker.ts'), { env: database!.env })
    send = (path, body) => post(worker.url + path, body)
  })
  afterAll(() => worker.stop())
}

/** Small quotas, so that many requests are refused. Windows of about a second, so that units return during the run. */
const { policies } = parseConfig(
  {
    policies: [
      { name: 'fixed', algorithm: 'fixed-window', limit: 9, window: '700ms' },
      { name: 'clock', algorithm: 'fixed-window', limit: 9, window: '700ms', align: 'clock' },
      { name: 'sliding', algorithm: 'sliding-window', limit: 11, window: '900ms' },
      { name: 'log', algorithm: 'sliding-log', limit: 10, window: '800ms' },
      { name: 'bucket', algorithm: 'token-bucket', limit: 40, burst: 8, window: '1s' },
      { name: 'gcra', algorithm: 'gcra', limit: 50, burst: 7, window: '1s' },
    ] satisfies PolicyOptions[],
  },
  defaultFields,
)

/** Posts on a connection of its own: workerd may close an idle one at the moment it is used again. */
async function post(url: string, body: string) {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  const headers = { 'content-length': Buffer.byteLength(body) }
  httpRequest(url, { method: 'POST', agent: false, headers }, resolve).on('error', reject).end(body)
  return (await json(await promise)) as StoreReply
}

/** The requests to the database, or to objects. */
const httpRequests = async (): Promise<number> =>
  objects ? objects.post('/calls') : database!.bridge.stats()[database!.bridge.token]!.http

let histories = 0

/** Sends the calls to these paths in turn, `atOnce` of them concurrently. A refund carries the time of an earlier reply. */
async function record(plans: ModelRequest[][], atOnce: number, paths: string[]): Promise<Call[]> {
  const run = `h${process.pid}-${++histories}`
  const history: Call[] = []
  const waiting = plans.map((plan) =>
    plan.map((request) => ({
      ...request,
      limits: request.limits.map((row) => ({ ...row, subject: `${run}-${row.subject}` })),
    })),
  )
  const worker = async () => {
    for (let plan = waiting.shift(); plan; plan = waiting.shift()) {
      const decidedAt = history.at(-1)?.reply.decidedAt
      const requests = plan.map((request) =>
        request.mode === 'refund' && decidedAt !== undefined ? { ...request, decidedAt } : request,
      )
      const sent = performance.now()
      const path = paths[waiting.length % paths.length]!
      const reply = await send(path, JSON.stringify(requests))
      history.push({ sent, answered: performance.now(), requests, reply })
    }
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
  return history
}

/** Expects an order that explains every reply. @returns false if the search gave up */
function expectExplained(history: Call[]): boolean {
  try {
    const explained = unexplained(history)
    expect(explained?.length ?? history.length).toBe(history.length)
    return true
  } catch (error) {
    if (!(error instanceof Undecided)) throw error
    return false
  }
}

const plans = (choice: Policy[]) => {
  const row = fc.record({
    subject: fc.constantFrom('x', 'y'),
    terms: fc.constantFrom(...choice),
    cost: fc.oneof(
      { weight: 5, arbitrary: fc.constant(1) },
      { weight: 1, arbitrary: fc.integer({ min: 0, max: 12 }) },
    ),
  })
  const request: fc.Arbitrary<ModelRequest> = fc.record({
    mode: fc.oneof(
      { weight: 8, arbitrary: fc.constant('take' as const) },
      { weight: 2, arbitrary: fc.constant('follow' as const) },
      {
        weight: 1,
        arbitrary: fc.constantFrom('peek' as const, 'refund' as const, 'reset' as const),
      },
    ),
    limits: fc.uniqueArray(row, {
      minLength: 1,
      maxLength: 4,
      selector: ({ subject, terms: policy }) => `${subject} ${policy.tag}`,
    }),
  })
  const list = fc.array(request, { minLength: 1, maxLength: 2 })
  return fc.array(objects ? list.map(withOneSubject) : list, { minLength: 150, maxLength: 150 })
}

/** The same list for the first subject only: several objects do not charge one request at one instant. */
function withOneSubject(list: ModelRequest[]): ModelRequest[] {
  const { subject } = list[0]!.limits[0]!
  const only = ({ limits }: ModelRequest) => limits.filter((row) => row.subject === subject)
  return list
    .map((request) => ({ ...request, limits: only(request) }))
    .filter(({ limits }) => limits.length > 0)
}

const single = policies.map((policy) => [policy.name, [policy]] as const)

test.each([['any mix', policies] as const, ...(isLong ? single : [])])(
  '%s: Concurrent calls are linearizable: one order explains every number in their replies.',
  { timeout: 120_000 },
  async (_, choice) => {
    let allowed = 0
    let refused = 0
    let shared = 0
    let calls = 0
    let undecided = 0
    const ways = fc.constantFrom<string[][]>(['/'], ['/shared'], ['/', '/shared'])
    const sharing = fc.tuple(fc.constantFrom(8, 50, 150), ways)
    await fc.assert(
      fc.asyncProperty(plans([...choice]), sharing, async (plans, [atOnce, paths]) => {
        const before = await httpRequests()
        const history = await record(plans, atOnce, paths)
        if (atOnce > 8 && !paths.includes('/')) {
          shared += history.length
          calls += (await httpRequests()) - before
        }
        for (const { reply } of history) {
          for (const row of reply.states.flat()) row.allowed ? allowed++ : refused++
        }
        let decided = expectExplained(history)
        // Calls that queue during a pause of the machine have the same time: fewer have fewer orders.
        for (let repeat = 1; repeat <= 2 && !decided; repeat++) {
          decided = expectExplained(await record(plans, 8, paths))
        }
        if (!decided) undecided++
      }),
      {
        // Always include the highest concurrency.
        examples: [[fc.sample(plans([...choice]), 1)[0]!, [150, ['/shared']]]],
        numRuns: isLong ? 8 : 4,
        endOnFailure: true, // timing cannot be replayed, so shrinking is useless
      },
    )
    // The test is meaningful only if calls were admitted, refused, and batched.
    expect(undecided).toBeLessThanOrEqual(2)
    expect(allowed).toBeGreaterThan(100)
    expect(refused).toBeGreaterThan(100)
    expect(calls).toBeLessThan(shared / 2)
  },
)
