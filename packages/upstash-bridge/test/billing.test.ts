import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startBridge, startRedis } from '../src/index.ts'
import { type BridgeStack, startBridgeStack } from './stack.ts'

let stack: BridgeStack
beforeAll(async () => {
  stack = await startBridgeStack()
})
afterAll(() => stack?.stop())

const post = (path: string, body: unknown) => stack.http(path, { method: 'POST', body })
const FLAG = '#!lua flags=allow-key-locking\n'

/** The bill for `work`, and the number of commands that Redis itself counted. */
async function billed(work: () => Promise<unknown>) {
  const before = stack.bridge.stats().dev!
  await stack.direct('CONFIG', 'RESETSTAT')
  await work()
  const stats = String(await stack.direct('INFO', 'commandstats'))
  const after = stack.bridge.stats().dev!
  const calls = [...stats.matchAll(/^cmdstat_([^:]+):calls=(\d+).*rejected_calls=(\d+)/gm)]
    .filter(
      ([, name]) =>
        !/^(config|multi|exec|cluster|command|info|client|hello|replconf)\b/.test(name!),
    )
    .reduce((sum, [, , ran, rejected]) => sum + Number(ran) + Number(rejected), 0)
  return {
    http: after.http - before.http,
    commands: after.commands - before.commands,
    inner: after.inner - before.inner,
    calls,
  }
}

describe('billing', () => {
  test.each([
    ['a command', () => post('/', ['ping']), 1, 0],
    ['a failed command', () => post('/', ['get']), 1, 0],
    ['a pipeline', () => post('/pipeline', [['ping'], ['get', 'a'], ['get', 'b']]), 3, 0],
    [
      'a transaction',
      () =>
        post('/multi-exec', [
          ['set', 'a', 1],
          ['get', 'a'],
        ]),
      2,
      0,
    ],
    [
      'a script',
      () =>
        post('/', [
          'eval',
          "redis.call('set', KEYS[1], 1) return redis.call('get', KEYS[1])",
          1,
          'a',
        ]),
      3,
      2,
    ],
    [
      'a script with the flag',
      () => post('/', ['eval', `${FLAG}for i = 1, 10 do redis.call('incr', KEYS[1]) end`, 1, 'a']),
      11,
      10,
    ],
    [
      'a script that catches errors',
      () =>
        post('/', ['eval', "redis.pcall('lpush', 'a', 1) return pcall(redis.call, 'get', 'a')", 0]),
      3,
      2,
    ],
    [
      'a script that fails after two commands',
      () => post('/', ['eval', "redis.call('set', 'a', 1)\nredis.call('lpush', 'a', 1)", 1, 'a']),
      3,
      2,
    ],
    ['a script that is not there', () => post('/', ['evalsha', 'f'.repeat(40), 0]), 1, 0],
    [
      'a script in a transaction',
      () =>
        post('/multi-exec', [
          ['set', 'a', 1],
          ['eval', "return redis.call('get', 'a')", 0],
        ]),
      3,
      1,
    ],
    ['a path', () => stack.http('/set/a/b'), 1, 0],
  ])(
    'The bill for %s matches the commands that Redis counts.',
    async (_, work, commands, inner) => {
      expect(await billed(work)).toEqual({ http: 1, commands, inner, calls: commands })
    },
  )

  test('The bill includes the commands that run inside a function.', async () => {
    const library = `#!lua name=counted
redis.register_function('twice', function(keys) redis.call('get', 'a') return redis.call('get', 'a') end)`
    await post('/', ['function', 'load', 'replace', library])
    expect(await billed(() => post('/', ['fcall', 'twice', 1, 'a']))).toEqual({
      http: 1,
      commands: 3,
      inner: 2,
      calls: 3,
    })
  })

  test('The bill includes neither refused commands nor requests with a wrong token.', async () => {
    const bill = await billed(async () => {
      await post('/', ['blpop', 'a', 0])
      await stack.http('/ping', { token: 'no' })
    })
    expect(bill).toEqual({ http: 1, commands: 0, inner: 0, calls: 0 })
  })

  test('GET /__stats returns the bill and adds nothing to it.', async () => {
    const { json } = await stack.http('/__stats')
    expect(json).toEqual(stack.bridge.stats().dev)
    expect((await stack.http('/__stats')).json).toEqual(json)
  })
})

describe('several databases', () => {
  test('The token selects the database, and each database has a separate bill.', async () => {
    const redises = await Promise.all([startRedis(), startRedis()])
    const bridge = await startBridge({
      redis: [
        { url: redises[0].url, token: 'one' },
        { url: redises[1].url, token: 'two' },
        { url: `${redises[1].url}/5`, token: 'two, database 5' },
      ],
    })
    try {
      const ask = async (token: string, path: string) => {
        const headers = { authorization: `Bearer ${token}` }
        return (await fetch(bridge.url + path, { headers })).text()
      }
      for (const token of ['one', 'two', 'two, database 5']) await ask(token, `/set/who/${token}`)
      expect(await ask('one', '/get/who')).toBe('{"result":"one"}')
      expect(await ask('two', '/get/who')).toBe('{"result":"two"}')
      expect(await ask('two, database 5', '/get/who')).toBe('{"result":"two, database 5"}')
      expect(await ask('dev', '/get/who')).toContain('WRONGPASS')
      await ask('two', '/eval/return%20redis.call(%22ping%22)/0')
      expect(bridge.stats()).toEqual({
        one: { http: 2, commands: 2, inner: 0 },
        two: { http: 3, commands: 4, inner: 1 },
        'two, database 5': { http: 2, commands: 2, inner: 0 },
      })
      expect(JSON.parse(await ask('one', '/__stats'))).toEqual({ http: 2, commands: 2, inner: 0 })
    } finally {
      await bridge.close()
      await Promise.all(redises.map((redis) => redis.stop()))
    }
  })
})

describe('the option rtt', () => {
  test('The latency of `rtt` is added once to each HTTP request, regardless of the number of commands.', async () => {
    const far = await startBridge({ ...stack.target, rtt: 40 })
    try {
      for (const path of ['', '/pipeline']) {
        const start = performance.now()
        const body = JSON.stringify(path ? new Array(100).fill(['ping']) : ['ping'])
        await fetch(far.url + path, {
          method: 'POST',
          body,
          headers: { authorization: 'Bearer dev' },
        })
        expect(performance.now() - start).toBeGreaterThan(38)
      }
    } finally {
      await far.close()
    }
  })
})
