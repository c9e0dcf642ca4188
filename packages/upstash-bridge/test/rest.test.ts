import { once } from 'node:events'
import { get } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type BridgeStack, startBridgeStack } from './stack.ts'

let stack: BridgeStack
beforeAll(async () => {
  stack = await startBridgeStack({ token: 'the-token' })
})
afterAll(() => stack?.stop())

const post = (path: string, body: unknown, headers = {}) =>
  stack.http(path, { method: 'POST', body, headers })

describe('a command in the body', () => {
  test('A command in the body returns its result.', async () => {
    expect(await post('/', ['SET', 'a', 'b', 'EX', 100])).toMatchObject({
      status: 200,
      text: '{"result":"OK"}',
    })
    expect((await post('/', ['get', 'a'])).text).toBe('{"result":"b"}')
    expect((await post('/', ['ttl', 'a'])).text).toMatch(/^\{"result":(9[5-9]|100)\}$/)
    expect((await post('/', ['get', 'absent'])).text).toBe('{"result":null}')
    expect((await post('/', ['mget', 'a', 'absent{a}'])).text).toBe('{"result":["b",null]}')
  })

  test('A response is JSON with a Content-Length.', async () => {
    const { headers } = await post('/', ['ping'])
    expect(headers.get('content-type')).toBe('application/json')
    expect(headers.get('content-length')).toBe('17')
  })

  test.each([
    ['a string', 'text', 'text'],
    ['an integer', 7, '7'],
    ['a fraction', 0.25, '0.25'],
    ['a large number', 1e21, '1e+21'],
    ['true', true, 'true'],
    ['false', false, 'false'],
    ['null', null, 'null'],
    ['an empty string', '', ''],
  ])('An argument can be %s.', async (_, sent, stored) => {
    await post('/', ['set', 'argument', sent])
    expect((await post('/', ['get', 'argument'])).json).toEqual({ result: stored })
  })

  test.each(['9223372036854775807', '-9223372036854775808', '0.1000', '12345678901234567890.5'])(
    'The number %s in a command keeps all its digits.',
    async (digits) => {
      await post('/', `["set", "digits", ${digits}]`)
      expect((await post('/', ['get', 'digits'])).json).toEqual({ result: digits })
    },
  )

  test('A pipeline of 20,000 fractions takes less than 5 seconds.', async () => {
    const pairs = Array.from({ length: 20_000 }, (_, n) => ['echo', n + 0.5])
    const start = performance.now()
    const { json } = await post('/pipeline', pairs)
    expect(performance.now() - start).toBeLessThan(5000) // parsing the body again for each fraction takes minutes
    expect((json as { result: string }[])[19_999]).toEqual({ result: '19999.5' })
  })

  test('An integer in a result keeps all its digits.', async () => {
    await post('/', ['set', 'big', '9223372036854775806'])
    expect((await post('/', ['incr', 'big'])).text).toBe('{"result":9223372036854775807}')
  })

  test.each([
    ['not JSON', 'set a b'],
    ['cut JSON', '["set","a"'],
    ['an object', '{"a":1}'],
    ['text', '"ping"'],
    ['null', 'null'],
    ['an empty array', '[]'],
    ['an empty body', ''],
    ['an object as argument', '["set","a",{}]'],
    ['an array as argument', '["set","a",["b"]]'],
    ['a deep array behind a fraction', `["a",0.5,${'['.repeat(100_000)}${']'.repeat(100_000)}]`],
    ['an array as name', '[["ping"]]'],
    ['10,000 open brackets', '['.repeat(10_000)],
  ])('A command body is refused with 400: %s.', async (_, body) => {
    const { status, json } = await post('/', body)
    expect(status).toBe(400)
    expect(json).toEqual({ error: expect.stringMatching(/^ERR /) })
  })
})

describe('an error', () => {
  test.each([
    [['get'], "ERR wrong number of arguments for 'get' command"],
    [['set', 'e', 'x', 'EX', 'soon'], 'ERR value is not an integer or out of range'],
    [['lpush', 'string', 'x'], /^WRONGTYPE /],
    [['nonesuch', 'x'], /^ERR Command is not available: 'NONESUCH'\. See https:/],
    [['evalsha', 'f'.repeat(40), 0], /^NOSCRIPT /],
    [[''], /^ERR Command is not available: ''/],
  ])('The error of Redis for %j is returned with 400.', async (command, text) => {
    await post('/', ['set', 'string', 'x'])
    const { status, json } = await post('/', command)
    expect(status).toBe(400)
    expect(json).toEqual({ error: typeof text === 'string' ? text : expect.stringMatching(text) })
  })

  test('An error is never encoded in base64.', async () => {
    const { text } = await post('/', ['get'], { 'upstash-encoding': 'base64' })
    expect(text).toBe(`{"error":"ERR wrong number of arguments for 'get' command"}`)
  })
})

describe('the path style', () => {
  test.each([
    ['GET', '/set/p/one', undefined, 'one'],
    ['POST', '/set/p', 'two', 'two'],
    ['PUT', '/set/p', '{"three":3}', '{"three":3}'],
    ['POST', '/set/p?EX=100', 'four', 'four'],
    ['POST', '/set/p?NX&EX=100', 'five', null],
    ['GET', '/set/p/six/EX/100', undefined, 'six'],
    ['GET', '/SET/p/%E2%82%AC%2F%3F%20+', undefined, '€/? +'],
    ['GET', '/set/p/seven?px=100000', undefined, 'seven'],
    ['GET', '/mset?p=a+b%2B', undefined, 'a b+'],
    ['GET', '/set/p/', undefined, ''],
    ['POST', '/set/p/', 'eight', null],
  ])('%s %s with the body %j stores %j.', async (method, path, body, stored) => {
    await post('/', stored === null ? ['set', 'p', 'before'] : ['del', 'p'])
    await stack.http(path, { method, ...(body !== undefined && { body }) })
    expect((await stack.http('/get/p')).json).toEqual({ result: stored ?? 'before' })
  })

  test('A path can contain any byte, percent-encoded.', async () => {
    await stack.http('/set/bytes/%00%ff%c3%28')
    const { json } = await stack.http('/get/bytes', { headers: { 'upstash-encoding': 'base64' } })
    expect(json).toEqual({ result: Buffer.from([0, 255, 0xc3, 0x28]).toString('base64') })
  })

  test('Query parameters become arguments in order, after the body.', async () => {
    await stack.http('/zadd/z?5=five&6=six', { method: 'POST', body: 'CH' })
    expect((await stack.http('/zrange/z/0/-1')).json).toEqual({ result: ['five', 'six'] })
  })

  test.each(['/get/%', '/get/%zz', '/get/%f', '/get/a?%=1'])(
    'The path %s is refused with 400.',
    async (path) => {
      expect(await stack.http(path)).toMatchObject({
        status: 400,
        json: { error: expect.stringMatching(/invalid URL/) },
      })
    },
  )
})

describe('methods', () => {
  test('HEAD returns the headers without a body.', async () => {
    const { status, headers, text } = await stack.http('/ping', { method: 'HEAD' })
    expect([status, headers.get('content-length'), text]).toEqual([200, '17', ''])
  })

  test.each(['DELETE', 'PATCH', 'OPTIONS', 'PROPFIND'])(
    'The method %s is refused with 405.',
    async (method) => {
      const { status, headers, json } = await stack.http('/ping', { method })
      expect([status, headers.get('allow')]).toEqual([405, 'HEAD, GET, POST, PUT'])
      expect(json).toEqual({ error: expect.any(String) })
    },
  )

  test('The body of a GET is not an argument.', async () => {
    expect((await stack.http('/')).json).toEqual({ error: expect.any(String) })
  })
})

describe('the token', () => {
  test.each([
    ['no token', null, ''],
    ['a wrong token', 'wrong', ''],
    ['an empty token', '', ''],
    ['a token that is too long', 'the-token2', ''],
    ['a wrong _token', null, '?_token=wrong'],
    ['a correct _token and a wrong header', 'wrong', '?_token=the-token'],
  ])('A request with %s is refused with 401.', async (_, token, query) => {
    const { status, json } = await stack.http(`/ping${query}`, { token })
    expect(status).toBe(401)
    expect(json).toEqual({ error: 'WRONGPASS invalid or missing auth token' })
  })

  test('The parameter _token carries the token and is not an argument.', async () => {
    const request = await stack.http('/echo/hello?_token=the-token', { token: null })
    expect(request.json).toEqual({ result: 'hello' })
    const posted = { method: 'POST', body: ['echo', 'hi'], token: null }
    expect((await stack.http('/?_token=the-token', posted)).json).toEqual({ result: 'hi' })
  })

  test('A wrong token is refused before the path and the body are checked.', async () => {
    for (const path of ['/pipeline', '/multi-exec', '/__stats', '/subscribe/x', '/%']) {
      const { status } = await stack.http(path, { method: 'POST', body: 'x', token: 'no' })
      expect([path, status]).toEqual([path, 401])
    }
  })
})

describe('a website', () => {
  const evil = { origin: 'https://evil.example' }
  test.each([
    [evil, 403],
    [{ origin: 'null' }, 403],
    [{ origin: 'http://127.0.0.1.evil.example' }, 403],
    [{ origin: 'http://localhost:3000' }, 200],
    [{ origin: 'http://[::1]:3000', 'sec-fetch-site': 'cross-site' }, 200],
    [{ 'sec-fetch-site': 'cross-site' }, 403],
    [{ 'sec-fetch-site': 'none' }, 200],
  ])('A browser request with the headers %j gets the status %i.', async (headers, status) => {
    const { port } = stack.bridge
    const request = get({ port, host: '127.0.0.1', path: '/ping?_token=the-token', headers })
    const [response] = await once(request, 'response')
    response.resume()
    expect(response.statusCode).toBe(status)
  })
})

describe('the sync token', () => {
  test('Each response, including errors, has a different sync token.', async () => {
    const answers = [
      await post('/', ['ping']),
      await post('/', ['get']),
      await post('/pipeline', [['ping']]),
      await post('/multi-exec', [['ping']]),
      await stack.http('/ping', { token: 'no' }),
    ]
    const tokens = answers.map(({ headers }) => headers.get('upstash-sync-token'))
    expect(new Set(tokens).size).toBe(5)
    expect(tokens).not.toContain(null)
  })
})
