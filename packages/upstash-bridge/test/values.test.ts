import { Redis } from '@upstash/redis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type BridgeStack, startBridgeStack } from './stack.ts'

const ALL_BYTES = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))
const BASE64 = { 'upstash-encoding': 'base64' }
const RESP2 = { 'upstash-response-format': 'resp2' }

let stack: BridgeStack
let client: Redis
beforeAll(async () => {
  stack = await startBridgeStack()
  client = new Redis({ url: stack.bridge.url, token: stack.bridge.token })
})
afterAll(() => stack?.stop())

const post = (path: string, body: unknown, headers = {}) =>
  stack.http(path, { method: 'POST', body, headers })
const base64 = (text: string | Buffer) => Buffer.from(text as string).toString('base64')

describe('bytes', () => {
  test('A value of all 256 bytes is stored from a body and returned in base64.', async () => {
    await post('/set/all', ALL_BYTES)
    expect((await stack.http('/get/all', { headers: BASE64 })).json).toEqual({
      result: base64(ALL_BYTES),
    })
    expect((await stack.http('/strlen/all')).json).toEqual({ result: 256 })
  })

  test('Without base64, bytes that are not UTF-8 become U+FFFD.', async () => {
    await post('/set/broken', Buffer.from([0x61, 0xff, 0xc3, 0x28, 0x62]))
    expect((await stack.http('/get/broken')).json).toEqual({ result: 'a\ufffd\ufffd(b' })
    expect(await client.get('broken')).toBe('a\ufffd\ufffd(b')
  })

  test.each([
    ['emoji', '👩‍👩‍👧‍👦🏳️‍🌈'],
    ['quotes and backslashes', '"\\\\"\''],
    ['line breaks', 'a\r\nb\nc\r'],
    ['control characters', '\u0000\u0001\u001f\u007f\u2028\u2029'],
    ['text that looks like base64', 'T0s='],
    ['text that looks like a RESP error', '-ERR no\r\n'],
  ])('The client stores and reads %s unchanged.', async (_, text) => {
    const raw = new Redis({
      url: stack.bridge.url,
      token: stack.bridge.token,
      automaticDeserialization: false,
    })
    await raw.hset(text, { [text]: text })
    expect(await raw.hget(text, text)).toBe(text)
    expect(await stack.command('hget', text, text)).toEqual({ result: text })
  })

  test('Half a surrogate pair becomes U+FFFD.', async () => {
    await post('/', '["set","half","a\\ud83db"]')
    expect(await stack.command('get', 'half')).toEqual({ result: 'a\ufffdb' })
  })

  test('Values of 1 MB and 9 MB are stored and returned unchanged.', async () => {
    for (const size of [1_000_000, 9_000_000]) {
      const value = 'é'.repeat(size / 2)
      expect(await client.set('large', value)).toBe('OK')
      expect(await client.get('large')).toBe(value)
    }
  })

  test('A request above 10 MB is refused with Upstash’s message.', async () => {
    const value = 'x'.repeat(10 * 1024 * 1024)
    const answer = await post('/', ['set', 'larger', value])
    expect(answer.status).toBe(400)
    expect(answer.json).toEqual({
      error: `ERR max request size exceeded. Limit: 10485760 bytes, Actual: ${value.length + 19} bytes`,
    })
    expect(await stack.command('exists', 'larger')).toEqual({ result: 0 })
  })
})

describe('base64', () => {
  test('Base64 applies to strings at every depth and to nothing else.', async () => {
    const script = `return {'a', 1, {'b', {'c', false}}, redis.status_reply('OK'), 'OK'}`
    const { json } = await post('/', ['eval', script, 0], BASE64)
    expect(json).toEqual({
      result: [base64('a'), 1, [base64('b'), [base64('c'), null]], base64('OK'), base64('OK')],
    })
  })

  test.each([
    [['set', 'k', 'v'], 'OK'],
    [['ping'], base64('PONG')],
    [['type', 'k'], base64('string')],
    [['echo', 'OK'], 'OK'],
    [['echo', ''], ''],
    [['get', 'absent'], null],
    [['strlen', 'k'], 1],
  ])('The command %j with base64 returns %j.', async (command, result) => {
    expect((await post('/', command, BASE64)).json).toEqual({ result })
  })

  test('Base64 works in pipelines and transactions.', async () => {
    for (const path of ['/pipeline', '/multi-exec']) {
      const { json } = await post(
        path,
        [
          ['set', 'k', 'v'],
          ['get', 'k'],
          ['incr', 'k'],
        ],
        BASE64,
      )
      expect(json).toEqual([
        { result: 'OK' },
        { result: base64('v') },
        { error: 'ERR value is not an integer or out of range' },
      ])
    }
  })

  test('The client reads an OK in an array.', async () => {
    await client.mset({ 'one{k}': 'OK', 'two{k}': 'x' })
    expect(await client.mget('one{k}', 'two{k}', 'three{k}')).toEqual(['OK', 'x', null])
    expect(
      await client.eval(`return {redis.call('SET', KEYS[1], 'y'), {'OK'}}`, ['one{k}'], []),
    ).toEqual(['OK', ['OK']])
  })
})

describe('the resp2 format', () => {
  test.each([
    [['set', 'k', 'v'], '+OK\r\n'],
    [['get', 'k'], '$1\r\nv\r\n'],
    [['get', 'absent'], '$-1\r\n'],
    [['strlen', 'k'], ':1\r\n'],
    [['mget', 'k', 'absent{k}'], '*2\r\n$1\r\nv\r\n$-1\r\n'],
    [['client', 'setinfo', 'lib-name', 'x'], '+OK\r\n'],
    [
      ['eval', "return {1, 'a', {redis.status_reply('s')}}", 0],
      '*3\r\n:1\r\n$1\r\na\r\n*1\r\n+s\r\n',
    ],
  ])('The command %j returns the RESP2 bytes of Redis.', async (command, reply) => {
    await stack.command('set', 'k', 'v')
    const { status, headers, text } = await post('/', command, RESP2)
    expect([status, headers.get('content-type')]).toEqual([200, 'application/octet-stream'])
    expect(text).toBe(reply)
  })

  test('A failed command in resp2 returns an error line with 400.', async () => {
    const { status, text } = await post('/', ['get'], RESP2)
    expect([status, text]).toEqual([400, "-ERR wrong number of arguments for 'get' command\r\n"])
  })

  test('A pipeline in resp2 returns one reply after another.', async () => {
    const commands = [
      ['set', 'k', 'v'],
      ['incr', 'k'],
      ['get', 'k'],
    ]
    const { status, text } = await post('/pipeline', commands, RESP2)
    expect(status).toBe(200)
    expect(text).toBe('+OK\r\n-ERR value is not an integer or out of range\r\n$1\r\nv\r\n')
  })

  test('A transaction returns JSON even if resp2 is requested.', async () => {
    expect((await post('/multi-exec', [['ping']], RESP2)).json).toEqual([{ result: 'PONG' }])
  })

  test.each([
    [{ 'upstash-response-format': 'resp3' }],
    [{ 'upstash-response-format': '' }],
    [{ ...RESP2, ...BASE64 }],
  ])('The format headers %j are refused with 400.', async (headers) => {
    const { status, json } = await post('/', ['ping'], headers)
    expect([status, json]).toEqual([400, { error: expect.stringMatching(/^ERR /) }])
  })

  test('The resp2 format returns any byte unchanged.', async () => {
    await post('/set/all', ALL_BYTES)
    const response = await fetch(`${stack.bridge.url}/get/all`, {
      headers: { authorization: 'Bearer dev', ...RESP2 },
    })
    const bytes = Buffer.from(await response.arrayBuffer())
    expect(bytes.subarray(6, 262).equals(ALL_BYTES)).toBe(true)
  })
})

test('Commands of text and of bytes in one pipeline arrive unchanged.', async () => {
  const texts = ['', 'plain', 'ü€😀', '\r\n*1\r\n$4\r\nPING\r\n', '\u0000']
  const body = texts.flatMap((text, index) => [
    ['set', `mixed:${index}`, text],
    ['eval', "return redis.call('GET', KEYS[1])", 1, `mixed:${index}`], // the bridge sends scripts as bytes
    ['get', `mixed:${index}`],
  ])
  const { json } = await stack.http('/pipeline', { method: 'POST', body })
  expect(json).toEqual(texts.flatMap((text) => ['OK', text, text].map((result) => ({ result }))))
})
