import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { isLong } from '../../support/long.ts'
import { otherSide, useOutbound } from '../../support/outbound.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

const stack = useOutbound()
const more = isLong ? 800 : 200

test('A call that waits takes less than 20 KiB.', async () => {
  const policies = [
    { name: 'calls', algorithm: 'token-bucket', limit: 1, window: '1m', burst: 1 },
  ] as const
  const [call] = stack.processes(1, otherSide(), {
    policies: [...policies],
    wait: '1d',
    deadline: '30s',
  })
  const controller = new AbortController()
  const { signal } = controller
  const begin = (count: number) =>
    Array.from({ length: count }, () =>
      call!('https://api.example.com/', { signal }).catch(() => {}),
    )
  const idle = async (waiting: number) => {
    await expect
      .poll(async () => (await call!.status()).nextTurnMs)
      .toBeGreaterThan(waiting * 59_000)
    collect()
    return process.memoryUsage().heapUsed
  }
  const calls = begin(100)
  const before = await idle(99)
  calls.push(...begin(more))
  const after = await idle(99 + more)
  expect((await call!.status()).waiting).toBe(99 + more)
  expect((after - before) / more).toBeLessThan(20 * 1024)
  controller.abort()
  await Promise.all(calls)
})
