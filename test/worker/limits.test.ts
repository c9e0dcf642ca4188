import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Stack } from '../../dev/stack.ts'
import { isLong } from '../support/long.ts'
import { startStack } from '../support/stack.ts'

const algorithms = ['fixed-window', 'sliding-window'] as const

let stack: Stack
beforeAll(async () => {
  stack = await startStack({
    config: {
      policies: algorithms.map((algorithm) => ({
        name: algorithm,
        algorithm,
        limit: 50,
        window: '1h',
        key: 'header:x-key',
        match: { path: `/${algorithm}` },
      })),
    },
  })
})
afterAll(() => stack?.stop())

test.each(algorithms)(
  'With %s exactly the limit of 200 concurrent requests is admitted, in each round.',
  async (algorithm) => {
    for (let round = 0; round < (isLong ? 10 : 1); round++) {
      const headers = { 'x-key': `key-${round}` }
      const statuses = await Promise.all(
        Array.from({ length: 200 }, async () => {
          const response = await stack.fetch(`/${algorithm}`, { headers })
          await response.arrayBuffer()
          return response.status
        }),
      )
      expect(statuses.filter((status) => status === 200)).toHaveLength(50)
      expect(statuses.filter((status) => status === 429)).toHaveLength(150)
    }
  },
)
