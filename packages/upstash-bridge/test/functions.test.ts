import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type BridgeStack, startBridgeStack } from './stack.ts'

const LIBRARY = `#!lua name=counters
local function bump(keys, args)
  if args[1] == 'fail' then
    redis.call('LPUSH', keys[1], 1) end
  if args[1] == 'all' then return redis.call('MGET', unpack(args)) end
  if args[1] == 'stray' then redis.call('INCR', 'other') end
  return {redis.call('INCR', keys[1]), #args}
end
redis.register_function{
  function_name = 'bump', callback = bump, flags = {'allow-key-locking'}, description = 'one more'
}
redis.register_function{
  function_name = 'peek',
  callback = function(keys) return redis.call('GET', keys[1]) end,
  flags = {'no-writes', 'allow-key-locking'}
}
redis.register_function('anywhere', function() return redis.call('GET', 'n') end)`

let stack: BridgeStack
beforeAll(async () => {
  stack = await startBridgeStack()
  expect(await stack.command('function', 'load', LIBRARY)).toEqual({ result: 'counters' })
})
afterAll(() => stack?.stop())

describe('a function with the flag allow-key-locking', () => {
  test('A function with the flag can be loaded and called.', async () => {
    await stack.command('set', 'n', 0)
    expect(await stack.command('fcall', 'bump', 1, 'n')).toEqual({ result: [1, 0] })
    expect(await stack.command('fcall', 'bump', 1, 'n', 'a', 'b')).toEqual({ result: [2, 2] })
    expect(await stack.command('fcall_ro', 'peek', 1, 'n')).toEqual({ result: '2' })
  })

  test('A function with the flag may not use undeclared keys.', async () => {
    expect((await stack.command('fcall', 'bump', 1, 'n', 'stray')).error).toMatch(
      /^ERR Dynamic keys are not allowed .* Key was: other script: bump, on @user_function:6\.$/,
    )
    expect(await stack.command('exists', 'other')).toEqual({ result: 0 })
  })

  test('Each call of a function may use only the keys that this call declares.', async () => {
    const n = 'n{all}'
    expect(await stack.command('fcall', 'bump', 2, 'all', n, 'all', n)).toHaveProperty('result')
    expect((await stack.command('fcall', 'bump', 1, 'all', 'all', n)).error).toContain(
      'Key was: n{all}',
    )
  })

  test('The error of a function reports the line in the original code.', async () => {
    expect((await stack.command('fcall', 'bump', 1, 'n', 'fail')).error).toMatch(
      /^WRONGTYPE .* script: bump, on @user_function:4\.$/,
    )
  })

  test('A function that is called without the bridge checks keys and returns the plain result.', async () => {
    await stack.command('set', 'n', 0)
    expect(await stack.direct('FCALL', 'bump', '1', 'n', 'x')).toEqual([1, 1])
    await expect(stack.direct('FCALL', 'bump', '1', 'n', 'stray')).rejects.toThrow(
      /^ERR Dynamic keys are not allowed .* Key was: other script: (bump, )?on @user_function:2\.$/,
    )
  })
})

test('A function without the flag may use undeclared keys.', async () => {
  await stack.command('set', 'n', 7)
  expect(await stack.command('fcall', 'anywhere', 0)).toEqual({ result: '7' })
})

test('FUNCTION LIST returns the original code of a library.', async () => {
  const { result } = await stack.command('function', 'list', 'withcode')
  const [[, name, , , , functions, , code]] = result as [unknown[]]
  expect([name, code]).toEqual(['counters', LIBRARY])
  expect((functions as string[][]).map((one) => one[1]).sort()).toEqual([
    'anywhere',
    'bump',
    'peek',
  ])
})

test('A library still checks and counts after FUNCTION DUMP and FUNCTION RESTORE.', async () => {
  const headers = { authorization: 'Bearer dev', 'upstash-response-format': 'resp2' }
  const dumped = await fetch(`${stack.bridge.url}/function/dump`, { headers })
  const reply = Buffer.from(await dumped.arrayBuffer())
  await stack.command('function', 'flush')
  expect((await stack.command('fcall', 'anywhere', 0)).error).toBe('ERR Function not found')
  const body = reply.subarray(reply.indexOf('\n') + 1, -2)
  const restored = await stack.http('/function/restore', { method: 'POST', body })
  expect(restored.json).toEqual({ result: 'OK' })
  await stack.command('set', 'n', 0)
  expect(await stack.command('fcall', 'bump', 1, 'n')).toEqual({ result: [1, 0] })
})

test.each([
  ['#!lua name=bad\nif x', 'ERR Error compiling function: user_function:2:'],
  ['#!lua name=bad\nreturn 1', 'ERR No functions registered'],
  ['return 1', 'ERR Missing library metadata'],
  ['#!lua name=bad\nredis.register_function()', 'ERR Error registering functions:'],
  [
    `#!lua name=bad\nredis.register_function{function_name='f', callback=function() end, flags={'x'}}`,
    'unknown flag',
  ],
  [LIBRARY, "ERR Library 'counters' already exists"],
])(
  'A library that Redis refuses is refused with the message of Redis: %j.',
  async (code, words) => {
    expect((await stack.command('function', 'load', code)).error).toContain(words)
  },
)
