/** The store sends calls to compiled scripts, and to the general script if one of them declines. */
import { expect, test } from 'vitest'
import type { StoreReply, StoreRequest } from '../../../../src/core/connection/store.ts'
import { commandsBetween } from '../../../support/commands.ts'
import { ask, newSubjects, policy, useBridge } from '../../../support/many-lists.ts'
import { newSubject } from '../../../support/subjects.ts'

const { running, newStore, requestsOf, answering } = useBridge()

const left = ({ states }: StoreReply) => states.flat().map(({ remaining }) => remaining)

test('The first call of a set carries its script, and later calls name it.', async () => {
  const store = newStore()
  const seen: string[][] = []
  using server = await answering((commands, number) => {
    seen.push(commands.flat().map(String))
    return { result: number === 2 ? `7 ${'+;'} +;` : '7 +;' }
  })
  const copy = newStore({ url: server.url })
  await copy.decide([ask('take', ['x'])])
  await copy.decide([ask('take', ['y'])])
  await copy.decideEach([[ask('take', ['x'])], [ask('take', ['y'])]], {})
  const [first, second, both] = seen
  expect(first!.slice(0, 1)).toEqual(['eval'])
  expect(first!.slice(2)).toEqual(['1', 'sluice:1:{x}'])
  expect(second).toEqual(['evalsha', expect.stringMatching(/^[\da-f]{40}$/), '1', 'sluice:1:{y}'])
  expect(both![0]).toBe('eval')
  expect(both!.slice(2)).toEqual(['2', 'sluice:1:{x}', 'sluice:1:{y}'])

  // Redis knows the script by this SHA-1.
  const subject = newSubject()
  const calls = async () => {
    for (let turn = 0; turn < 3; turn++) await store.decide([ask('take', [subject])])
  }
  const commands = await commandsBetween(running.redis.url, calls)
  expect(commands).toEqual({ eval: 1, evalsha: 2, time: 3, get: 3, set: 3 })
})

test.skipIf(process.env.REDIS_URL)(
  'Redis gets a compiled script again that it has lost, and no call is charged twice.',
  async () => {
    let reloads = 0
    const store = newStore({ onReload: () => (reloads += 1) })
    const [one, ...others] = newSubjects(3)
    const lists = others.map((subject) => [ask('take', [subject])])
    const decide = async () => [
      await store.decide([ask('take', [one!])]),
      ...((await store.decideEach(lists, {})) as StoreReply[]),
    ]
    await decide()
    await running.client.sendCommand(['SCRIPT', 'FLUSH'])
    const http = await requestsOf(async () => {
      expect((await decide()).flatMap(left)).toEqual([98, 98, 98])
    })
    expect([http, reloads]).toEqual([4, 2])
    expect(await requestsOf(decide)).toBe(2)
  },
)

/** Uses seven units in a form that no script writes: with a needless colon. */
async function plant(subject: string): Promise<StoreRequest> {
  await running.client.set(`sluice:1:{${subject}}`, `1;${policy.tag}:${Date.now()}:3600000:7:;`)
  return ask('take', [subject])
}

test('A call that a compiled script declines goes to the general script, and is charged once.', async () => {
  let reloads = 0
  const store = newStore({ onReload: () => (reloads += 1) })
  const plain = ask('take', newSubjects(1))
  await store.decide([plain])
  const http = await requestsOf(async () => {
    expect(left(await store.decide([await plant(newSubject())]))).toEqual([92])
    const lists = [[await plant(newSubject())], [plain]]
    const replies = (await store.decideEach(lists, {})) as StoreReply[]
    expect(replies.flatMap(left)).toEqual([92, 98])
  })
  expect([http, reloads]).toEqual([4, 0])
})

test('After three declined calls the calls of the set go to the general script at once.', async () => {
  const store = newStore()
  const httpOf = async () => {
    const foreign = await plant(newSubject())
    return requestsOf(async () => {
      expect(left(await store.decide([foreign]))).toEqual([92])
    })
  }
  for (const http of [2, 2, 2, 1, 1]) expect(await httpOf()).toBe(http)
})

test('An idempotency key, a sent time and a namespace have the same effect with a compiled script.', async () => {
  const [a, b] = newSubjects(2)
  const store = newStore({ namespace: 'shop' })
  const now = Date.now()
  expect((await store.decide([ask('take', [a!])], { now })).decidedAt).toBe(now)
  expect(await running.client.get(`sluice:1:shop:{${a}}`)).toBe(`1;t:${now}:3600000:1;`)
  const idempotency = { key: newSubject(), fingerprint: 'f', forMs: 60_000 }
  for (let turn = 0; turn < 2; turn++) {
    const [reply] = await store.decideEach([[ask('take', [b!])]], { idempotency })
    expect(reply).toMatchObject({ states: [[{ remaining: 99 }]] })
  }
})
