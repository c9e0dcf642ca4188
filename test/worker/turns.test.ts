/** Requests that wait for their turn, in workerd. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { turns } from '../../src/features/turns/index.ts'
import type { Stack } from '../../tools/stack.ts'
import { CROSS_REQUEST_IO } from '../support/cross-request-io.ts'
import { startStack } from '../support/stack.ts'

const paced = {
  name: 'paced',
  algorithm: 'gcra',
  limit: 10,
  window: '1s',
  key: 'header:x-user',
} as const

let stack: Stack
beforeAll(async () => {
  stack = await startStack({
    config: {
      deadline: '10s',
      use: [turns()],
      live: { from: 'redis', every: '1s' },
      policies: [{ ...paced, wait: '5s', onMissingKey: 'skip' }],
    },
  })
})
afterAll(() => stack?.stop())

async function send(user?: string) {
  const response = await stack.fetch('/', { headers: user ? { 'x-user': user } : {} })
  const waited = response.headers.get('server-timing')
  await response.text()
  return { status: response.status, waited, at: Date.now() }
}

test('Requests wait for their turn in one isolate, and those of others do not wait for them.', async () => {
  const begun = Date.now()
  const waiting = Array.from({ length: 6 }, () => send('one'))
  expect(await send()).toMatchObject({ status: 200, waited: null })
  const answers = (await Promise.all(waiting)).sort((a, b) => a.at - b.at)
  answers.forEach(({ status, at }, index) => {
    expect(status).toBe(200)
    expect(at - begun).toBeGreaterThanOrEqual(index * 100)
  })
  expect(answers.some(({ waited }) => waited)).toBe(true)
  expect(stack.worker.logs.join('\n')).not.toMatch(CROSS_REQUEST_IO)
})

test('A live document changes the wait of a policy, and removes it.', async () => {
  const deploy = (policies: object[]) =>
    fetch(stack.bridge.url, {
      method: 'POST',
      headers: { authorization: `Bearer ${stack.bridge.token}` },
      body: JSON.stringify(['SET', 'sluice:live', JSON.stringify({ policies })]),
    })
  const refusals = (user: string) => async () => {
    const answers = await Promise.all(Array.from({ length: 4 }, () => send(user)))
    return answers.filter(({ status }) => status === 429).length
  }
  await deploy([{ ...paced, limit: 1, wait: '2100ms' }])
  await expect.poll(refusals('two'), { timeout: 20_000 }).toBeGreaterThan(0)
  const answers = await Promise.all(Array.from({ length: 4 }, () => send('three')))
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 200, 429])
  await deploy([paced])
  await expect.poll(refusals('four'), { timeout: 20_000 }).toBe(3)
})
