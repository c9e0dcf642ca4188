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
  await stack.fetch('/', { ip: '203.0.113.200' }) // loads the script
})
afterAll(() => stack?.stop())

test('With clock edge three limits cost three Redis commands, and a refusal costs two.', async () => {
  const commands = () => commandsBetween(stack.redis.url, () => stack.fetch('/'))
  expect(await commands()).toEqual({ evalsha: 1, get: 1, set: 1 })
  expect(await commands()).toEqual({ evalsha: 1, get: 1, set: 1 })
  expect(await commands()).toEqual({ evalsha: 1, get: 1 })
})

test('With clock edge exactly the limit of 200 concurrent requests is admitted.', async () => {
  const answers = await Promise.all(
    Array.from({ length: 200 }, () => stack.fetch('/', { ip: '203.0.113.9' })),
  )
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(2)
})
