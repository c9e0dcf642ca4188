import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type BridgeStack, CLUSTER, CROSSSLOT, startBridgeStack } from './stack.ts'

const FLAG = '#!lua flags=allow-key-locking\n'

let stack: BridgeStack
beforeAll(async () => {
  stack = await startBridgeStack()
})
beforeEach(async () => {
  await stack.direct('FLUSHALL')
  await stack.direct('RPUSH', 'list{k}', 'x')
  await stack.direct('SET', 'k', '5')
})
afterAll(() => stack?.stop())

const evaluate = (script: string, keys: unknown[] = [], args: unknown[] = []) =>
  stack.command('eval', script, keys.length, ...keys, ...args)

describe('an undeclared key under the flag', () => {
  const refused = (key: string) =>
    `ERR Dynamic keys are not allowed in Lua scripts when 'allow-key-locking' flag is set. Key was: ${key}`

  test.each([
    ["redis.call('GET', 'other')", 'other'],
    ["redis.call('get', ARGV[1])", 'argument'],
    ["redis.call('GET', KEYS[1] .. ':2')", 'k:2'],
    ["redis.call('MGET', KEYS[1], 'other')", 'other'],
    ["redis.call('MSET', KEYS[1], 'no', 'other', 'no')", 'other'],
    ["redis.call('SET', 5, 1)", '5'],
    ["redis.call('BITOP', 'NOT', KEYS[1], 'other')", 'other'],
    ["redis.call('ZUNIONSTORE', KEYS[1], 1, 'other')", 'other'],
    ["redis.call('SORT', KEYS[2], 'STORE', 'other')", 'other'],
    ["redis.call('XREAD', 'STREAMS', 'other', '0')", 'other'],
    ["redis.call('OBJECT', 'ENCODING', 'other')", 'other'],
    ["redis.call('RENAME', KEYS[1], 'other')", 'other'],
    ["redis.call('EVAL', 'return 1', 1, 'other')", 'other'],
    ["local get = 'G' .. 'ET' return redis.call(get, 'other')", 'other'],
    ["local call = redis.call return call('GET', 'other')", 'other'],
    ["local r = redis return r['call']('GET', 'other')", 'other'],
    ["local a = ... return redis.call('GET', 'other')", 'other'],
    ["KEYS[1] = 'other' return redis.call('GET', KEYS[1])", 'other'],
    ["KEYS[3] = 'other' return redis.call('GET', KEYS[3])", 'other'],
  ])('An undeclared key is refused under the flag: %s.', async (code, key) => {
    const { error } = await evaluate(FLAG + code, ['k', 'list{k}'], ['argument'])
    expect(error).toContain(refused(key))
  })

  test('redis.pcall and pcall catch the refusal of an undeclared key.', async () => {
    const code = `${FLAG}local one = redis.pcall('GET', 'other')
      local fine, two = pcall(redis.call, 'GET', 'other')
      return {one.err, tostring(fine), two}`
    expect(await evaluate(code)).toEqual({ result: [refused('other'), 'false', refused('other')] })
  })

  test('An undeclared key is refused before the command runs.', async () => {
    await evaluate(`${FLAG}redis.pcall('MSET', KEYS[1], 'changed', 'other', 'made')`, ['k'])
    expect(await stack.direct('MGET', 'k', 'other')).toEqual(['5', null])
  })

  test.each(['FLUSHALL', 'FLUSHDB', 'flushdb'])(
    'The command %s is refused under the flag.',
    async (name) => {
      expect((await evaluate(`${FLAG}redis.call('${name}')`)).error).toContain('is not allowed')
      expect(await stack.direct('EXISTS', 'k')).toBe(1)
    },
  )

  test('Without the flag a script may use undeclared keys.', async () => {
    // On a cluster they must be on the node of the declared keys, and with a shebang in their slot.
    for (const code of ["return redis.call('GET', 'k')", "#!lua\nreturn redis.call('GET', 'k')"]) {
      expect(await evaluate(code, ['other{k}'])).toEqual({ result: '5' })
      const answer = await evaluate(code)
      if (CLUSTER) expect(answer.error).toMatch(/non local key|Unable to run|do not hash/)
      else expect(answer).toEqual({ result: '5' })
    }
  })
})

describe('a declared key under the flag', () => {
  test.each([
    ["return redis.call('GET', KEYS[1])", '5'],
    ["return redis.call('GET', 'k')", '5'],
    ["return redis.call('MGET', KEYS[1], 'gone{k}')", ['5', null]],
    ["return redis.call('RPUSH', KEYS[6], 1)", 1],
    ["return redis.call('GET', 6)", null],
    ["return redis.call('ZUNIONSTORE', KEYS[3], 1, KEYS[4])", 0],
    ["return redis.call('SORT', KEYS[2], 'ALPHA', 'STORE', 'gone{k}')", 1],
    ["return redis.call('OBJECT', 'ENCODING', KEYS[1])", 'int'],
    ["return #redis.call('TIME')", 2],
    ["return redis.call('PUBLISH', 'channel', 'x')", 0],
    ["return redis.call('SPUBLISH', 'channel{k}', 'x')", 0],
    ["return redis.call('ECHO', 'k2')", 'k2'],
    ['return redis.call(ARGV[1], KEYS[1])', '5'],
    ["return {redis.call('DEL', unpack(KEYS))}", [2]],
  ])('A script may use declared keys under the flag: %s.', async (code, result) => {
    const keys = ['k', 'list{k}', 'gone{k}', 'four{k}', 'five{k}', 'six{k}']
    const isNumber = code.includes("'GET', 6")
    if (isNumber) keys.push('6')
    const isElsewhere = CLUSTER && isNumber // a key that is a number has no hash tag
    expect(await evaluate(FLAG + code, keys, ['get'])).toEqual(
      isElsewhere ? { error: CROSSSLOT } : { result },
    )
  })

  test('The fifth declared key passes each time, and an undeclared key does not.', async () => {
    const code = `${FLAG}redis.call('INCR', KEYS[5]) redis.call('INCR', 'five{k}')
      return redis.call('GET', KEYS[5]) .. tostring(pcall(redis.call, 'GET', 'sixth'))`
    expect(await evaluate(code, ['one{k}', 'two{k}', 'three{k}', 'four{k}', 'five{k}'])).toEqual({
      result: '2false',
    })
  })

  test('A script that edits KEYS may use the declared key, but not the edited one.', async () => {
    const code = `${FLAG}local was = KEYS[6] KEYS[6] = 'other' redis.call('SET', was, 1)
      return {redis.call('GET', was), tostring(pcall(redis.call, 'GET', KEYS[6]))}`
    expect(await evaluate(code, ['1{k}', '2{k}', '3{k}', '4{k}', '5{k}', '6{k}'])).toEqual({
      result: ['1', 'false'],
    })
  })

  test('A script may use 1,000 declared keys.', async () => {
    const keys = Array.from({ length: 1000 }, (_, index) => `many{k}:${index}`)
    const code = `${FLAG}for i = 1, #KEYS do redis.call('INCR', KEYS[i]) end return redis.call('GET', 'many{k}:999')`
    expect(await evaluate(code, keys)).toEqual({ result: '1' })
  })
})
