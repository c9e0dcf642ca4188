import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type BridgeStack, CLUSTER, startBridgeStack } from './stack.ts'

let stack: BridgeStack
beforeAll(async () => {
  stack = await startBridgeStack()
})
afterAll(() => stack?.stop())

const post = (path: string, body: unknown) => stack.http(path, { method: 'POST', body })

describe('/pipeline', () => {
  test('A pipeline returns the result or error of each command, in order.', async () => {
    const { status, json } = await post('/pipeline', [
      ['set', 'q', 'x'],
      ['incr', 'q'],
      ['get', 'q'],
      ['lrange', 'nothing', 0, -1],
      ['get'],
    ])
    expect(status).toBe(200)
    expect(json).toEqual([
      { result: 'OK' },
      { error: 'ERR value is not an integer or out of range' },
      { result: 'x' },
      { result: [] },
      { error: "ERR wrong number of arguments for 'get' command" },
    ])
  })

  test('A pipeline of 20,000 commands is accepted.', async () => {
    const { json } = await post('/pipeline', new Array(20_000).fill(['incr', 'many']))
    expect((json as { result: number }[]).map(({ result }) => result)).toEqual(
      Array.from({ length: 20_000 }, (_, index) => index + 1),
    )
  })

  test.each([['{}'], ['[]'], ['["get","a"]'], ['[[]]'], ['[["get","a"],7]'], ['']])(
    'The pipeline body "%s" is refused with 400.',
    async (body) => {
      expect(await post('/pipeline', body)).toMatchObject({
        status: 400,
        json: { error: expect.stringMatching(/^ERR /) },
      })
    },
  )
})

describe('/multi-exec', () => {
  test('A transaction runs all commands and returns an error of execution in its position.', async () => {
    const { status, json } = await post('/multi-exec', [
      ['set', 'm', 'x'],
      ['incr', 'm'],
      ['get', 'm'],
    ])
    expect(status).toBe(200)
    expect(json).toEqual([
      { result: 'OK' },
      { error: 'ERR value is not an integer or out of range' },
      { result: 'x' },
    ])
  })

  test.each([
    ['too few arguments', ['get'], /^EXECABORT .*wrong number of arguments/],
    ['an unknown command', ['nonesuch'], /^EXECABORT .*Command is not available: 'NONESUCH'/],
    ['a refused command', ['blpop', 'x', 0], /Command is not available: 'BLPOP'/],
    ['a nested MULTI', ['multi'], /Command is not available: 'MULTI'/],
  ])('A transaction with %s is discarded as a whole.', async (_, wrong, text) => {
    await post('/', ['set', 'kept', 'before'])
    const { status, json } = await post('/multi-exec', [['set', 'kept', 'after'], wrong])
    expect(status).toBe(400)
    expect(json).toEqual({ error: expect.stringMatching(text) })
    expect((await post('/', ['get', 'kept'])).json).toEqual({ result: 'before' })
  })

  test('A transaction accepts CLIENT SETINFO, and the bridge counts the commands of a function loaded in it.', async () => {
    const library = `#!lua name=tx
redis.register_function('in_tx', function() return redis.call('PING') end)`
    const { json } = await post('/multi-exec', [
      ['client', 'setinfo', 'lib-name', 'x'],
      ['function', 'load', library],
    ])
    if (CLUSTER) {
      const error =
        'ERR FUNCTION runs on all nodes of the cluster and cannot be part of a transaction'
      return expect(json).toEqual({ error })
    }
    expect(json).toEqual([{ result: 'OK' }, { result: 'tx' }])
    const before = stack.bridge.stats().dev!.inner
    expect((await post('/', ['fcall', 'in_tx', 0])).json).toEqual({ result: 'PONG' })
    expect(stack.bridge.stats().dev!.inner - before).toBe(1)
  })

  test('Other commands do not run between the commands of a transaction.', async () => {
    await post('/', ['set', 'turn', 0])
    const bursts = Array.from({ length: 50 }, () =>
      post('/multi-exec', [
        ['incr', 'turn'],
        ['incr', 'turn'],
        ['incr', 'turn'],
      ]),
    )
    const others = Array.from({ length: 50 }, () => post('/', ['incr', 'turn']))
    for (const { json } of await Promise.all(bursts)) {
      const [a, b, c] = (json as { result: number }[]).map(({ result }) => result)
      expect([b, c]).toEqual([a! + 1, a! + 2])
    }
    await Promise.all(others)
  })
})
