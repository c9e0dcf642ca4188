import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Stack, startStack } from '../../dev/stack.ts'
import { commandsBetween } from '../support/commands.ts'

let stack: Stack
beforeAll(async () => {
  const quota = { limit: 2, window: '1h', algorithm: 'fixed-window' } as const
  stack = await startStack({
    config: {
      clock: 'edge',
      denialCache: false,
      policies: [1, 2, 3].map((n) => ({ ...quota, name: `p${n}` })),
    },
  })
  await stack.fetch('/', { ip: '203.0.113.200' }) // brings the script
})
afterAll(() => stack?.stop())

test('by the Worker’s clock three limits cost three commands, and two when they refuse', async () => {
  const commands = () => commandsBetween(stack.redis.url, () => stack.fetch('/'))
  expect(await commands()).toEqual({ evalsha: 1, mget: 1, set: 1 })
  expect(await commands()).toEqual({ evalsha: 1, mget: 1, set: 1 })
  expect(await commands()).toEqual({ evalsha: 1, mget: 1 })
})

test('and 200 at once are as many as the limit lets', async () => {
  const answers = await Promise.all(
    Array.from({ length: 200 }, () => stack.fetch('/', { ip: '203.0.113.9' })),
  )
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(2)
})
