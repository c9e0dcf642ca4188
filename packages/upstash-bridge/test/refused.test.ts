import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type BridgeStack, startBridgeStack } from './stack.ts'

let stack: BridgeStack
beforeAll(async () => {
  stack = await startBridgeStack()
})
afterAll(() => stack?.stop())

const post = (path: string, body: unknown) => stack.http(path, { method: 'POST', body })

describe('over REST', () => {
  test.each([
    'blpop l 0',
    'brpop l 0',
    'brpoplpush a b 0',
    'blmove a b left left 0',
    'blmpop 0 1 l left',
    'bzpopmin z 0',
    'bzpopmax z 0',
    'bzmpop 0 1 z min',
    'xread block 0 streams s $',
    'XREAD COUNT 1 BLOCK 0 STREAMS s $',
    'xreadgroup group g c block 0 streams s >',
    'xreadgroup group g streams block 0 streams s >',
    'XREADGROUP GROUP streams c COUNT 1 NOACK BLOCK 0 STREAMS s >',
    'wait 1 0',
    'watch a',
    'unwatch',
    'multi',
    'exec',
    'discard',
    'subscribe c',
    'psubscribe c',
    'ssubscribe c',
    'unsubscribe',
    'monitor',
    'auth x',
    'hello 3',
    'quit',
    'reset',
    'select 1',
    'client kill 1',
    'client reply off',
    'script debug yes',
    'shutdown nosave',
    'debug sleep 0',
    'config set maxmemory 1',
    'replicaof no one',
    'migrate 127.0.0.1 1 k 0 10',
    'acl setuser default off',
  ])('The command "%s" is refused over REST.', async (line) => {
    const { status, json } = await post('/', line.split(' '))
    expect(status).toBe(400)
    expect(json).toEqual({ error: expect.stringMatching(/not (available|supported)/) })
  })

  test('A refused command does not affect the rest of a pipeline.', async () => {
    const { json } = await post('/pipeline', [
      ['multi'],
      ['set', 'r', 1],
      ['watch', 'r'],
      ['get', 'r'],
    ])
    expect(json).toEqual([
      { error: expect.any(String) },
      { result: 'OK' },
      { error: expect.any(String) },
      { result: '1' },
    ])
  })

  test('PING, ECHO, CLIENT SETINFO and names such as BLOCK are accepted over REST.', async () => {
    expect(await stack.command('ping', 'x')).toEqual({ result: 'x' })
    expect(await stack.command('client', 'setinfo', 'lib-name', 'x')).toEqual({ result: 'OK' })
    expect(await stack.command('xread', 'streams', 'block', '0')).toEqual({ result: null })
    await stack.command('xgroup', 'create', 's', 'block', '0', 'MKSTREAM')
    const read = 'xreadgroup group block block streams s >'
    expect(await stack.command(...read.split(' '))).toEqual({ result: null })
  })
})
