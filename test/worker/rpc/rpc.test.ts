/** `sluice/rpc` in workerd: other Workers ask the gateway through service bindings. */
import { readFile } from 'node:fs/promises'
import { Miniflare } from 'miniflare'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type BuiltModules, compatibilityDate } from '../../../tools/build.ts'
import { bundled } from '../../support/bundled.ts'
import { useDatabase } from '../../support/database.ts'

const database = useDatabase()
const text = (value: string) => ({ type: 'text', value })
const file = (name: string) => readFile(new URL(name, import.meta.url), 'utf8')
const esm = (contents: string): BuiltModules => ({
  ...{ mainModule: 'worker.js', modules: { 'worker.js': { type: 'esm', contents } } },
})

let miniflare: Miniflare
beforeAll(async () => {
  const gateway = await bundled('test/worker/rpc/gateway-worker.ts')
  const other = esm(await file('other-worker.js'))
  const variables = Object.entries(database.env).map(([name, value]) => [name, text(value)])
  const to = (gateway: string, props?: object) => ({
    ...{ type: 'worker', worker: gateway, exportName: 'RateLimit', ...(props && { props }) },
  })
  const worker = (name: string, manifest: BuiltModules, env: object) => ({
    config: { name, compatibilityDate, env, manifest },
  })
  const bindingsTo = (gateway: string) => ({
    ...{ LOGIN: to(gateway, { policy: 'login' }), ANY: to(gateway) },
  })
  miniflare = new Miniflare({
    host: '127.0.0.1',
    port: 0,
    workers: [
      worker('first', other, bindingsTo('sluice')),
      worker('second', other, bindingsTo('another-isolate')),
      worker('any-call', esm(await file('any-call-worker.js')), bindingsTo('sluice')),
      worker('sluice', gateway, Object.fromEntries(variables)),
      worker('another-isolate', gateway, Object.fromEntries(variables)),
    ],
  } as unknown as ConstructorParameters<typeof Miniflare>[0])
  await miniflare.ready
}, 120_000)
afterAll(() => miniflare?.dispose())

let user = 0
beforeEach(() => {
  user += 1
})

const workerOf = async (name: string) =>
  (await miniflare.getWorker(name)) as unknown as { fetch: typeof fetch }

const login = async (worker: string) => {
  const { fetch } = await workerOf(worker)
  return (await fetch(`http://other/?user=user-${user}`)).status
}

/** A call with the answer, or the error that the caller catches. */
async function ask(method: string, call: unknown, binding?: string) {
  const { fetch } = await workerOf('any-call')
  const response = await fetch('http://other/', {
    method: 'POST',
    body: JSON.stringify({ binding, method, call }),
  })
  // biome-ignore lint/suspicious/noExplicitAny: each test knows its answer
  return (await response.json()) as any
}

test("A Worker that is written for Cloudflare's binding is limited by the policy of its props.", async () => {
  const seen = []
  for (const _ of [1, 2, 3, 4]) seen.push(await login('first'))
  expect(seen).toEqual([200, 200, 200, 429])
})

test('Two Workers that ask two isolates of the gateway share the count.', async () => {
  const seen = []
  for (const worker of ['first', 'second', 'first', 'second']) seen.push(await login(worker))
  expect(seen).toEqual([200, 200, 200, 429])
})

describe('A call', () => {
  test('has the decision with its numbers.', async () => {
    const { answer } = await ask('limit', { key: `user-${user}`, cost: 2 }, 'LOGIN')
    expect(answer).toMatchObject({
      ...{ success: true, allowed: true, reason: 'within-limit', limit: 3, remaining: 1 },
      limits: [{ policy: 'login', cost: 2 }],
    })
  })

  test('names the policy where the binding does not.', async () => {
    const call = { policy: 'pairs', key: [`user-${user}`, 'one'] }
    expect((await ask('limit', call)).answer).toMatchObject({ success: true, remaining: 2 })
  })

  test('may peek, refund and reset.', async () => {
    const call = { policy: 'login', key: `user-${user}` }
    const { decidedAt } = (await ask('limit', { ...call, cost: 3 })).answer
    expect((await ask('peek', call)).answer).toMatchObject({ success: false, remaining: 0 })
    const refunded = await ask('refund', { ...call, cost: 2, decidedAt })
    expect(refunded.answer.limits).toMatchObject([{ remaining: 2 }])
    expect((await ask('reset', call)).answer.limits).toMatchObject([{ remaining: 3 }])
  })

  test('may name several limits, which are all charged or none.', async () => {
    const limits = [
      ['login', `user-${user}`],
      ['pairs', [`user-${user}`, 'one']],
    ]
    const { answer } = await ask('limit', { limits, cost: 2 })
    expect(answer).toMatchObject({ success: true, remaining: 1, limits: [{}, {}] })
    expect((await ask('limit', { limits, cost: 2 })).answer).toMatchObject({ success: false })
    expect((await ask('peek', { limits })).answer.remaining).toBe(1)
  })

  test.each([
    [3, 1, 2],
    [1, 2, 1],
    [2, undefined, 1],
  ])('of %i units that has used %s is settled, and leaves %i.', async (cost, used, left) => {
    const call = { key: `user-${user}` }
    const decision = (await ask('limit', { ...call, cost }, 'LOGIN')).answer
    await ask('settle', { ...call, used, decision }, 'LOGIN')
    expect((await ask('peek', call, 'LOGIN')).answer.remaining).toBe(left)
  })

  test.each(['limit', 'peek', 'reset', 'refund', 'settle'])(
    'of %s without a policy names the call.',
    async (method) => {
      const { message } = await ask(method, { key: 'ann' })
      expect(message).toContain(`${method}: policy: expected the name of a policy, got nothing`)
    },
  )

  test.each([
    [{ key: 'ann' }, 'policy: expected the name of a policy, got nothing'],
    [{ policy: 'other', key: 'ann' }, 'policy: expected "login" or "pairs", got "other"'],
    [{ policy: 'login' }, 'key: expected a text'],
    [{ policy: 'login', key: 'ann', cost: -1 }, 'cost: expected a whole number'],
    [undefined, 'policy: expected the name of a policy, got nothing'],
  ])('that is wrong rejects with a TypeError: %j.', async (call, message) => {
    const error = await ask('limit', call)
    expect(error).toMatchObject({ name: 'TypeError' })
    expect(error.message).toContain(message)
  })
})
