import { ErrorReply } from 'redis'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { toJson, toResp2 } from '../src/reply.ts'
import { type BridgeStack, startBridgeStack } from './stack.ts'

/** Commands to which Upstash replies differently from Redis. */
let stack: BridgeStack
beforeAll(async () => {
  stack = await startBridgeStack()
})
beforeEach(async () => {
  await stack.direct('FLUSHALL')
})
afterAll(() => stack?.stop())

const post = (path: string, body: unknown, headers = {}) =>
  stack.http(path, { method: 'POST', body, headers })

describe('COPY of a key onto itself', () => {
  test.each([['copy k k'], ['COPY k k REPLACE'], ['copy k k DB 0']])(
    'The command "%s" returns 0 and keeps the value.',
    async (line) => {
      await stack.command('set', 'k', 'v')
      expect(await stack.command(...line.split(' '))).toEqual({ result: 0 })
      expect(await stack.command('get', 'k')).toEqual({ result: 'v' })
    },
  )

  test('The reply is 0 in a pipeline, in a transaction and in resp2.', async () => {
    for (const path of ['/pipeline', '/multi-exec']) {
      const { json } = await post(path, [
        ['set', 'k', 'v'],
        ['copy', 'k', 'k'],
      ])
      expect(json).toEqual([{ result: 'OK' }, { result: 0 }])
    }
    const resp2 = await post('/', ['copy', 'k', 'k'], { 'upstash-response-format': 'resp2' })
    expect([resp2.status, resp2.text]).toEqual([200, ':0\r\n'])
  })

  test('Other errors of COPY stay errors.', async () => {
    expect(await stack.command('copy', 'k', 'k', 'XX')).toEqual({ error: 'ERR syntax error' })
    expect((await stack.command('copy', 'k')).error).toContain('wrong number of arguments')
  })
})

describe('XREADGROUP with NOACK', () => {
  const consumers = async () =>
    (await stack.command('xinfo', 'consumers', 's', 'g')).result as unknown[][]
  const read = (...options: string[]) =>
    stack.command('xreadgroup', 'GROUP', 'g', 'c', ...options, 'STREAMS', 's', '>')
  const entry = { result: [['s', [['1-1', ['field', 'value']]]]] }

  beforeEach(async () => {
    await stack.command('xadd', 's', '1-1', 'field', 'value')
    await stack.command('xgroup', 'create', 's', 'g', '0')
  })

  test.each([[['NOACK']], [['count', '5', 'noack']]])(
    'XREADGROUP with the options %j returns the entries and creates no consumer.',
    async (options) => {
      expect(await read(...options)).toEqual(entry)
      expect(await read(...options)).toEqual({ result: null })
      expect(await consumers()).toEqual([])
    },
  )

  test('XREADGROUP with NOACK keeps a consumer that exists, with its pending entries.', async () => {
    expect(await read()).toEqual(entry)
    await stack.command('xadd', 's', '1-2', 'field', 'other')
    expect((await read('NOACK')).result).toEqual([['s', [['1-2', ['field', 'other']]]]])
    expect(await consumers()).toEqual([expect.arrayContaining(['name', 'c', 'pending', 1])])
  })

  test('A group with the name NOACK does not change how XREADGROUP works.', async () => {
    await stack.command('xgroup', 'create', 's', 'NOACK', '0')
    await stack.command('xreadgroup', 'GROUP', 'NOACK', 'c', 'STREAMS', 's', '>')
    const { result } = await stack.command('xinfo', 'consumers', 's', 'NOACK')
    expect(result).toHaveLength(1)
  })

  test('XREADGROUP with NOACK works in pipelines and transactions, and is one billed command.', async () => {
    for (const [index, path] of ['/pipeline', '/multi-exec'].entries()) {
      await stack.command('xadd', 's', `2-${index}`, 'field', path)
      const before = stack.bridge.stats().dev!.commands
      const body = [['xreadgroup', 'GROUP', 'g', 'c', 'NOACK', 'STREAMS', 's', '>'], ['ping']]
      const { json } = await post(path, body)
      expect(JSON.stringify(json)).toContain(path)
      expect(stack.bridge.stats().dev!.commands - before).toBe(2)
    }
    expect(await consumers()).toEqual([])
  })

  test.each([
    ['an unknown group', ['xreadgroup', 'GROUP', 'no', 'c', 'NOACK', 'STREAMS', 's', '>']],
    ['too few ids', ['xreadgroup', 'GROUP', 'g', 'c', 'NOACK', 'STREAMS', 's', 't', '>']],
    ['no streams', ['xreadgroup', 'GROUP', 'g', 'c', 'NOACK', 'COUNT', '1', 'x']],
    ['an invalid id', ['xreadgroup', 'GROUP', 'g', 'c', 'NOACK', 'STREAMS', 's', 'soon']],
  ])('The error for %s is that of Redis.', async (_, command) => {
    const direct = await stack.direct(...command).catch((error: Error) => error.message)
    expect((await stack.command(...command)).error).toBe(direct)
  })
})

// Valkey 9 shortened the text. The tests run another server, so its reply is given here.
test('NOSCRIPT of Valkey 9 has the text of Upstash.', () => {
  const reply = new ErrorReply('NOSCRIPT No matching script.')
  const error = 'NOSCRIPT No matching script. Please use EVAL.'
  expect(toJson(reply, false)).toBe(JSON.stringify({ error }))
  expect(toResp2(reply).toString()).toBe(`-${error}\r\n`)
})
