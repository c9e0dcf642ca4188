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
    'move k 1',
    'swapdb 0 1',
    'slowlog get',
    'commandlog get 10 slow', // of Valkey
    'cluster slots',
    'acl setuser default off',
  ])('The command "%s" is refused over REST.', async (line) => {
    const { status, json } = await post('/', line.split(' '))
    expect(status).toBe(400)
    expect(json).toEqual({ error: expect.stringMatching(/not (available|supported)/) })
  })

  // The text of a script may hide the name of a command, so Redis refuses it, by the rights of the connection.
  test.each([
    'MIGRATE 127.0.0.1 1 k 0 10',
    'SELECT 3',
    'MOVE k 1',
    'SWAPDB 0 1',
    'SLOWLOG GET',
    'LATENCY LATEST',
    'CLUSTER MEET 127.0.0.1 1',
    'ACL LIST',
    'CONFIG GET dir',
    'DEBUG SLEEP 0',
  ])('A script cannot call the command "%s".', async (line) => {
    const refused = {
      error: expect.stringMatching(
        /can't run this command|no permissions to run|not allowed from script/,
      ),
    }
    const script = 'return redis.call(unpack(ARGV))'
    const hidden = 'return _G["re" .. "dis"].call(unpack(ARGV))'
    for (const code of [script, hidden]) {
      expect(await stack.command('eval', code, 0, ...line.split(' '))).toEqual(refused)
    }
    const body = `redis.register_function("call", function(_, args) return redis.call(unpack(args)) end)`
    await stack.command('function', 'load', 'replace', `#!lua name=call\n${body}`)
    expect(await stack.command('fcall', 'call', 0, ...line.split(' '))).toEqual(refused)
  })

  test('A script can call the other commands.', async () => {
    const script = `redis.call('SET', KEYS[1], 'x') return { redis.call('KEYS', KEYS[1]), redis.call('COPY', KEYS[1], KEYS[2]) }`
    const answer = await stack.command('eval', script, 2, '{s}a', '{s}b')
    expect(answer).toEqual({ result: [['{s}a'], 1] })
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
