import { Redis } from '@upstash/redis'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type BridgeStack, startBridgeStack } from './stack.ts'

/** Tests @upstash/redis with its default options: auto-pipelining, base64, read-your-writes, retries, parsing. */
let stack: BridgeStack
let client: Redis
beforeAll(async () => {
  stack = await startBridgeStack()
})
beforeEach(async () => {
  await stack.direct('FLUSHALL')
  client = new Redis({ url: stack.bridge.url, token: stack.bridge.token })
})
afterAll(() => stack?.stop())

const requests = () => stack.bridge.stats().dev!.http

describe('values', () => {
  test.each([
    ['text', 'hello'],
    ['emoji', '🐙'],
    ['a number', 42],
    ['a fraction', 0.5],
    ['a boolean', true],
    ['an object', { a: [1, { b: null }], ü: '"' }],
    ['an array', [1, 'two', false]],
    ['null', null],
    ['a number too long for JavaScript, as text', '12345678901234567890'],
  ])('The client stores and reads %s unchanged.', async (_, value) => {
    await client.set('k', value)
    expect(await client.get('k')).toEqual(value)
  })

  test('Hashes, sorted sets and streams are returned parsed.', async () => {
    await client.hset('h', { n: 1, o: { x: 1 } })
    expect(await client.hgetall('h')).toEqual({ n: 1, o: { x: 1 } })
    await client.zadd<unknown>('z', { score: 1.5, member: 'a' }, { score: 2, member: { m: 1 } })
    expect(await client.zrange('z', 0, -1, { withScores: true })).toEqual(['a', 1.5, { m: 1 }, 2])
    const id = await client.xadd('x', '*', { field: 'value' })
    expect(await client.xrange('x', '-', '+')).toEqual({ [id]: { field: 'value' } })
  })

  test('SCAN returns all keys.', async () => {
    await Promise.all(Array.from({ length: 100 }, (_, n) => client.set(`key:${n}`, n)))
    const found = new Set<string>()
    let cursor = '0'
    do {
      const [next, keys] = await client.scan(cursor, { match: 'key:*', count: 30 })
      for (const key of keys) found.add(key)
      cursor = next
    } while (cursor !== '0')
    expect(found.size).toBe(100)
  })
})

describe('auto-pipelining', () => {
  test('Auto-pipelining sends the commands of one tick in one request.', async () => {
    const before = requests()
    const answers = await Promise.all(Array.from({ length: 500 }, () => client.incr('n')))
    expect(answers).toEqual(Array.from({ length: 500 }, (_, index) => index + 1))
    expect(requests() - before).toBe(1)
  })

  test('An error in an automatic pipeline rejects only the command that caused it.', async () => {
    await client.set('text', 'x')
    const answers = await Promise.allSettled([
      client.incr('n'),
      client.incr('text'),
      client.incr('n'),
    ])
    expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  })
})

describe('pipelines and transactions', () => {
  test('Pipelines and transactions of 1,000 commands return the results in order.', async () => {
    for (const batch of [client.pipeline(), client.multi()]) {
      await client.del('n')
      for (let index = 0; index < 1000; index++) batch.incr('n')
      expect(await batch.exec()).toEqual(Array.from({ length: 1000 }, (_, index) => index + 1))
    }
  })

  test('The error of a pipeline names the command that failed.', async () => {
    const batch = client.pipeline().set('text', 'x').incr('text')
    await expect(batch.exec()).rejects.toThrow('Command 2 [ incr ] failed: ERR value is not')
    await expect(client.multi().set('a', 1).exec()).resolves.toEqual(['OK'])
  })

  test('A discarded transaction fails as a whole.', async () => {
    const batch = client.multi().set('a', 1).sadd('s{a}', 'x')
    batch.mset({}) // Redis does not queue an MSET without arguments
    await expect(batch.exec()).rejects.toThrow(/EXECABORT .*wrong number of arguments for 'mset'/)
    expect(await client.exists('a', 's{a}')).toBe(0)
  })
})

describe('errors', () => {
  test('The client reports the message of a Redis error.', async () => {
    await client.set('text', 'x')
    await expect(client.lpush('text', 1)).rejects.toThrow(/WRONGTYPE Operation against a key/)
  })

  test('The client reports Upstash’s message for a wrong token.', async () => {
    const stranger = new Redis({ url: stack.bridge.url, token: 'wrong' })
    await expect(stranger.get('k')).rejects.toThrow('WRONGPASS invalid or missing auth token')
  })
})

describe('createScript', () => {
  test('A created script uses EVAL only when Redis does not have it, and EVALSHA otherwise.', async () => {
    const script = client.createScript<number>(
      `#!lua flags=allow-key-locking\nreturn redis.call('INCRBY', KEYS[1], ARGV[1])`,
    )
    expect(await script.exec(['n'], ['2'])).toBe(2)
    expect(await script.exec(['n'], ['3'])).toBe(5)
    await client.scriptFlush()
    expect(await script.exec(['n'], ['4'])).toBe(9)
    const stats = String(await stack.direct('INFO', 'commandstats'))
    expect(/cmdstat_eval:calls=(\d+)/.exec(stats)?.[1]).toBe('2')
  })
})

test('Each of 200 concurrent clients receives the replies to its own commands.', async () => {
  const clients = Array.from(
    { length: 200 },
    () => new Redis({ url: stack.bridge.url, token: stack.bridge.token }),
  )
  const answers = await Promise.all(
    clients.map(async (one, index) => {
      await one.set(`client:${index}`, `value ${index}`)
      await one.incr('all')
      const [value, list] = await Promise.all([one.get(`client:${index}`), one.echo(`e${index}`)])
      return [value, list]
    }),
  )
  expect(answers).toEqual(clients.map((_, index) => [`value ${index}`, `e${index}`]))
  expect(await client.get('all')).toBe(200)
})

test('A client reads the value that it has just written.', async () => {
  for (let index = 0; index < 100; index++) {
    await client.set('k', index)
    expect(await client.get('k')).toBe(index)
  }
})
