import { afterAll, beforeAll, expect, test } from 'vitest'
import { startRedis } from '../src/index.ts'
import { type BridgeStack, startBridgeStack } from './stack.ts'

/** Takes the time as its first argument. An empty one means the clock of Redis, in s. */
const TIMED = `#!lua flags=allow-key-locking
local now = ARGV[1]
if now == '' or ARGV[1] == '' then
  now = redis.call('TIME')[1]
end
return now .. ' ' .. ARGV[2]`

/** Takes the time at the end of its first argument. */
const IN_HEADER = `local mode, now = string.match(ARGV[1] or '', '^(%a):(%d*)$')
if now == '' then
  now = redis.call('TIME')[1]
end
return mode .. now`

let stack: BridgeStack
beforeAll(async () => {
  stack = await startBridgeStack({ clock: () => 42 })
})
afterAll(() => stack?.stop())

test('A script with an empty time gets the time of the clock, over every path.', async () => {
  expect(await stack.command('eval', TIMED, 1, 'k', '', 'x')).toEqual({ result: '42 x' })
  const sha = (await stack.command('script', 'load', TIMED)).result
  expect(await stack.command('evalsha', sha, 0, '', 'x')).toEqual({ result: '42 x' })
  for (const path of ['/pipeline', '/multi-exec']) {
    const body = [['evalsha', sha, 2, 'a', 'b{a}', '', 'y']]
    expect((await stack.http(path, { method: 'POST', body })).json).toEqual([{ result: '42 y' }])
  }
})

test('A script with an empty time at the end of its first argument gets the time of the clock.', async () => {
  expect(await stack.command('eval', IN_HEADER, 0, 'm:')).toEqual({ result: 'm42' })
  expect(await stack.command('eval', IN_HEADER, 0, 'm:7')).toEqual({ result: 'm7' })
})

test('A script that allows an absent time gets the time of the clock as its first argument.', async () => {
  const script = `local now = ARGV[1]
if (ARGV[1] or '') == '' then now = redis.call('TIME')[1] end
return now .. #ARGV`
  expect(await stack.command('eval', script, 1, 'k')).toEqual({ result: '421' })
  expect(await stack.command('eval', script, 1, 'k', '', 'x')).toEqual({ result: '422' })
  expect(await stack.command('eval', script, 1, 'k', '7')).toEqual({ result: '71' })
})

test('A script that compares its first argument without a default gets no argument.', async () => {
  const script = "if ARGV[1] == '' then return redis.call('TIME') end return #ARGV"
  expect(await stack.command('eval', script, 1, 'k')).toEqual({ result: 0 })
})

test('A time that the caller sends stays unchanged.', async () => {
  expect(await stack.command('eval', TIMED, 0, '7', 'x')).toEqual({ result: '7 x' })
})

test.each([
  ["return ARGV[1] .. '|'", 'never reads the clock'],
  ["return redis.call('TIME') and ARGV[1] .. '|'", 'always reads the clock'],
  ["return ARGV[1] == '' and '|'", 'only compares its argument'],
])('The argument of the script %s stays empty, because it %s.', async (script) => {
  expect(await stack.command('eval', script, 0, '')).toEqual({ result: '|' })
})

test('Without a clock the script reads that of Redis.', async () => {
  const other = await startBridgeStack()
  const { result } = await other.command('eval', TIMED, 0, '', 'x')
  await other.stop()
  expect(Math.abs(Number(String(result).split(' ')[0]) - Date.now() / 1000)).toBeLessThan(5)
})

test('startRedis ignores REDIS_URL with the option own.', async () => {
  const { url, stop } = await startRedis({ own: true })
  process.env.REDIS_URL = url
  const [own, given] = [await startRedis({ own: true }), await startRedis()]
  delete process.env.REDIS_URL
  await own.stop()
  expect(own.owned).toBe(true)
  await stop()
  expect(own.url).not.toBe(url)
  expect(given).toMatchObject({ owned: false, url })
})
