import { createHash } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startBridge } from '../src/index.ts'
import { type BridgeStack, CLUSTER, startBridgeStack, withoutName } from './stack.ts'

const FLAG = '#!lua flags=allow-key-locking\n'
const GET = `${FLAG}return redis.call('GET', KEYS[1])`
const sha1 = (text: string) => createHash('sha1').update(text).digest('hex')

let stack: BridgeStack
beforeAll(async () => {
  stack = await startBridgeStack()
})
beforeEach(async () => {
  await stack.direct('FLUSHALL')
  await stack.direct('SCRIPT', 'FLUSH')
  await stack.direct('RPUSH', 'list', 'x')
  await stack.direct('SET', 'k', '5')
})
afterAll(() => stack?.stop())

const evaluate = (script: string, keys: unknown[] = [], args: unknown[] = []) =>
  stack.command('eval', script, keys.length, ...keys, ...args)

describe('the flag allow-key-locking', () => {
  test.each([
    ['EVAL', ['eval', GET, 1, 'k']],
    ['EVAL, beside another flag', ['eval', GET.replace('=', '=no-writes,'), 1, 'k']],
    ['EVAL_RO', ['eval_ro', GET.replace('=', '=no-writes,'), 1, 'k']],
    [
      'EVAL_RO, before another flag',
      ['eval_ro', GET.replace('locking', 'locking,no-writes'), 1, 'k'],
    ],
    ['eval in lower case, with Windows line ends', ['eval', GET.replace('\n', '\r\n'), 1, 'k']],
  ])('The flag is accepted: %s.', async (_, command) => {
    expect(await stack.command(...command)).toEqual({ result: '5' })
  })

  test('Other flags keep their effect next to allow-key-locking.', async () => {
    const script = `#!lua flags=no-writes,allow-key-locking\nredis.call('SET', KEYS[1], 1)`
    expect((await evaluate(script, ['k'])).error).toContain('Write commands are not allowed')
  })

  test.each([
    ['an unknown flag beside it', '#!lua flags=allow-key-locking,nonesuch\nreturn 1', 'nonesuch'],
    ['no code', '#!lua flags=allow-key-locking', 'Invalid script shebang'],
    ['a line before the shebang', `\n${GET}`, "unexpected symbol near '#'"],
  ])(
    'A script with the flag is refused with the message of Redis: %s.',
    async (_, script, words) => {
      expect((await evaluate(script, ['k'])).error).toContain(words)
    },
  )
})

test('A script of another engine is refused with the message of Redis, with and without the flag.', async () => {
  const code = '#!python\nreturn 1'
  const direct = await stack.direct('EVAL', code, '0').catch((error: Error) => error.message)
  expect(direct).toMatch(/engine.*python/)
  expect((await evaluate(code)).error).toBe(direct)
  expect((await evaluate(code.replace('\n', ' flags=allow-key-locking\n'))).error).toBe(direct)
})

describe('the SHA-1 of the original', () => {
  test('SCRIPT LOAD returns the SHA-1 of the original, and EVALSHA and EVALSHA_RO accept it.', async () => {
    const script = GET.replace('=', '=no-writes,')
    expect(await stack.command('script', 'load', script)).toEqual({ result: sha1(script) })
    for (const name of ['evalsha', 'EVALSHA_RO']) {
      expect(await stack.command(name, sha1(script), 1, 'k')).toEqual({ result: '5' })
      expect(await stack.command(name, sha1(script).toUpperCase(), 1, 'k')).toEqual({ result: '5' })
    }
  })

  test('EVALSHA accepts the SHA-1 of the original after EVAL.', async () => {
    const other = GET.replace('GET', 'get')
    expect((await stack.command('evalsha', sha1(other), 1, 'k')).error).toMatch(/^NOSCRIPT /)
    await evaluate(GET, ['k'])
    expect(await stack.command('evalsha', sha1(GET), 1, 'k')).toEqual({ result: '5' })
  })

  test('SCRIPT EXISTS accepts the SHA-1 of the original.', async () => {
    await (CLUSTER ? stack.command('script', 'load', GET) : evaluate(GET, ['k']))
    const other = await stack.command('script', 'load', 'return 1')
    const exists = await stack.command('script', 'exists', sha1(GET), 'f'.repeat(40), other.result)
    expect(exists).toEqual({ result: [1, 0, 1] })
  })

  test('After SCRIPT FLUSH by any client the SHA-1 is unknown until the script is loaded again.', async () => {
    for (const isDirect of [false, true]) {
      const flush = () =>
        isDirect ? stack.direct('SCRIPT', 'FLUSH') : stack.command('script', 'flush')
      await evaluate(GET, ['k'])
      await flush()
      expect(await stack.command('script', 'exists', sha1(GET))).toEqual({ result: [0] })
      const answer = await stack.command('evalsha', sha1(GET), 1, 'k')
      // On a cluster the bridge loads a script on a node that lacks it, unless the client has removed all scripts.
      if (CLUSTER && isDirect) expect(answer).toEqual({ result: '5' })
      else expect(answer.error).toMatch(/^NOSCRIPT /)
      await stack.command('script', 'load', GET)
      expect(await stack.command('evalsha', sha1(GET), 1, 'k')).toEqual({ result: '5' })
    }
  })

  test('A second bridge on the same Redis accepts the SHA-1 after it has run EVAL.', async () => {
    await evaluate(GET, ['k'])
    const second = await startBridge(stack.target)
    const ask = async (command: unknown[]) => {
      const headers = { authorization: 'Bearer dev' }
      const body = JSON.stringify(command)
      return (await fetch(second.url, { method: 'POST', headers, body })).json()
    }
    expect(await ask(['evalsha', sha1(GET), 1, 'k'])).toEqual({
      error: expect.stringMatching(/^NOSCRIPT/),
    })
    expect(await ask(['eval', GET, 1, 'k'])).toEqual({ result: '5' })
    expect(await ask(['evalsha', sha1(GET), 1, 'k'])).toEqual({ result: '5' })
    await second.close()
  })

  test('EVALSHA runs a script that was loaded without the bridge.', async () => {
    const sha = await stack.direct('SCRIPT', 'LOAD', "return redis.call('GET', KEYS[1])")
    expect(await stack.command('evalsha', sha, 1, 'k')).toEqual({ result: '5' })
  })

  test('The SHA-1 of the original works in pipelines and transactions.', async () => {
    for (const path of ['/pipeline', '/multi-exec']) {
      const body = [
        ['script', 'load', GET],
        ['evalsha', sha1(GET), 1, 'k'],
        ['eval', GET, 1, 'k'],
      ]
      expect((await stack.http(path, { method: 'POST', body })).json).toEqual([
        { result: sha1(GET) },
        { result: '5' },
        { result: '5' },
      ])
    }
  })
})

describe('results of scripts', () => {
  test.each([
    ['return', null],
    ['', null],
    ['return nil', null],
    ['return false', null],
    ['return true', 1],
    ['return 3.9, 5', 3],
    ["return {1, 'a', {false, {}}, nil, 'cut'}", [1, 'a', [null, []]]],
    ['return {ok = "FINE"}', 'FINE'],
    ['return "a" -- a comment', 'a'],
    ['return {double = 3.5}', '3.5'],
    ['return redis.sha1hex("")', 'da39a3ee5e6b4b0d3255bfef95601890afd80709'],
    ["return {redis.status_reply('S'), redis.LOG_WARNING}", ['S', 3]],
    ['return select("#", ...)', 0],
    ['return {#KEYS, #ARGV, KEYS[1], ARGV[2]}', [1, 2, 'k', 'b']],
    ['local redis = redis; return redis.call("GET", KEYS[1])', '5'],
    ['return cjson.encode({a = {1, 2}})', '{"a":[1,2]}'],
    [
      'return {type(redis.call), type(redis.pcall), type(redis)}',
      ['function', 'function', 'table'],
    ],
    ["redis.setresp(3) return redis.call('CONFIG', 'GET', 'x')", undefined],
  ])('A script returns the same result as without the bridge: %s.', async (code, result) => {
    for (const script of [code, `#!lua\n${code}`, FLAG + code]) {
      const answer = await evaluate(script, ['k'], ['a', 'b'])
      if (result === undefined) expect(answer).toEqual({ error: expect.any(String) })
      else expect(answer).toEqual({ result })
    }
  })

  test('A script with too many local variables for the guard runs without it.', async () => {
    const locals = Array.from({ length: 200 }, (_, index) => `local v${index} = ${index}`)
    expect(await evaluate(`${FLAG}${locals.join('\n')}\nreturn v199`)).toEqual({ result: 199 })
    const upvalues = locals.slice(0, 60).map((_, index) => `v${index}`)
    const code = `${locals.slice(0, 60).join(' ')}
      local function all() return ${upvalues.join('+')} end
      redis.call('SET', 'sum', all()) return all()`
    expect(await evaluate(code)).toEqual({ result: 1770 })
  })

  test('A script can contain and return any byte.', async () => {
    const path = `/eval/${encodeURIComponent("return '")}%ff%00%c3${encodeURIComponent("'")}/0`
    const { json } = await stack.http(path, { headers: { 'upstash-encoding': 'base64' } })
    expect(json).toEqual({ result: Buffer.from([0xff, 0, 0xc3]).toString('base64') })
  })
})

describe('an error in a script', () => {
  test.each([
    ["\n\nredis.call('GET', 'list')", 3],
    ["local x = 1\nreturn redis.call('GET', 'list')", 2],
    ["local function f()\n  local x = redis.call('GET', 'list')\nend\nf()", 2],
    ["\nerror({err = 'MINE it is'})", 2],
    ["\nerror('said')", 2],
    ['local x\n\nx = nil + 1', 3],
    ["return redis.call('GET', 'list')", 1],
  ])(
    'A script error has the message of Redis, and the line and the SHA-1 of the original: %j.',
    async (code, line) => {
      const direct = await stack.direct('EVAL', code, '0').catch((error: Error) => error.message)
      const own = (await evaluate(code)).error!
      expect(withoutName(own)).toBe(withoutName(direct as string))
      expect(own).toContain(`script: ${sha1(code)}, on @user_script:${line}.`)
      const flagged = FLAG + code.replace("'list'", 'KEYS[1]')
      const { error } = await evaluate(flagged, ['list'])
      expect(error).toContain(`script: ${sha1(flagged)}, on @user_script:${line + 1}.`)
    },
  )

  test.each(['syntax error', '\n\nif x then\n', 'return 1 end', 'return [[', "return 'a\n'"])(
    'A syntax error is reported with the message of Redis: %j.',
    async (code) => {
      const direct = await stack.direct('EVAL', code, '0').catch((error: Error) => error.message)
      expect((await evaluate(code)).error).toBe(direct)
      expect((await stack.command('script', 'load', code)).error).toBe(direct)
      expect((await evaluate(FLAG + code)).error).toMatch(/^ERR Error compiling script/)
    },
  )

  test.each([
    "redis.call('INCR', KEYS[1]) return {err = 'ERR Error compiling script (x)'}",
    "redis.call('INCR', KEYS[1]) error({err = 'ERR Error compiling script (x)'})",
    "redis.call('INCR', KEYS[1]) return redis.error_reply('ERR Error compiling function')",
  ])('A script that returns a text like a syntax error runs only once: %s.', async (code) => {
    expect((await evaluate(code, ['k'])).error).toContain('ERR Error compiling')
    expect(await stack.direct('GET', 'k')).toBe('6')
  })

  test('An error table without a message does not crash Redis, as it does in 7.0.', async () => {
    expect((await evaluate('error({1, 2})')).error).toContain('ERR unknown error')
    expect(await stack.command('ping')).toEqual({ result: 'PONG' })
  })
})

describe('the option checkKeys: false', () => {
  test('With `checkKeys: false` undeclared keys pass and inner commands are not counted.', async () => {
    const bare = await startBridge({ ...stack.target, checkKeys: false })
    const body = JSON.stringify(['eval', `${FLAG}return redis.call('GET', 'k')`, 1, 'other{k}'])
    const headers = { authorization: 'Bearer dev' }
    const answer = await fetch(bare.url, { method: 'POST', headers, body })
    expect(await answer.json()).toEqual({ result: '5' })
    expect(bare.stats()).toEqual({ dev: { http: 1, commands: 1, inner: 0 } })
    const library = `#!lua name=bare
redis.register_function{function_name='bare', flags={'allow-key-locking'}, callback=function()
  return redis.call('GET', 'k') end}`
    const ask = async (...command: unknown[]) => {
      const init = { method: 'POST', headers, body: JSON.stringify(command) }
      return (await fetch(bare.url, init)).json()
    }
    expect(await ask('function', 'load', library)).toEqual({ result: 'bare' })
    expect(await ask('fcall', 'bare', 1, 'other{k}')).toEqual({ result: '5' })
    await bare.close()
  })
})
