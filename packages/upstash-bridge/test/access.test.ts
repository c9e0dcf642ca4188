import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from '@upstash/redis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parseCli } from '../src/cli-options.ts'
import { startBridge } from '../src/index.ts'
import { readTokens } from '../src/tokens.ts'
import { type BridgeStack, startBridgeStack } from './stack.ts'

let stack: BridgeStack
beforeAll(async () => {
  stack = await startBridgeStack({
    tokens: [{ token: 'writer' }, { token: 'other-writer' }, { token: 'reader', readOnly: true }],
  })
})
afterAll(() => stack?.stop())

const post = (path: string, body: unknown, token: string) =>
  stack.http(path, { method: 'POST', body, token })
const refused = (name: string) => ({
  error: `NOPERM this user has no permissions to run the '${name}' command`,
})

describe('several tokens', () => {
  test('Each token reaches the same database and the same bill.', async () => {
    await post('/', ['set', 'shared', 'x'], 'writer')
    for (const token of ['other-writer', 'reader']) {
      expect((await post('/', ['get', 'shared'], token)).json).toEqual({ result: 'x' })
    }
    expect(Object.keys(stack.bridge.stats())).toEqual(['writer'])
  })

  test.each(['dev', 'write', 'writer ', 'WRITER', 'writerwriter', 'reader\u0000'])(
    'The text %j is not accepted as a token.',
    async (token) => {
      const { status } = await stack.http(`/ping?_token=${encodeURIComponent(token)}`, {
        token: null,
      })
      expect(status).toBe(401)
    },
  )

  test('The same token twice is an error.', async () => {
    const tokens = [{ token: 'a' }, { token: 'a', readOnly: true }]
    await expect(startBridgeStack({ tokens })).rejects.toThrow('got the same one twice')
  })
})

describe('a read-only token', () => {
  test.each([
    ['get shared'],
    ['mget shared'],
    ['EXISTS shared'],
    ['object encoding shared'],
    ['scan 0'],
    ['ping'],
    ['echo x'],
    ['client setinfo lib-name x'],
    ['xread streams s 0'],
  ])('The command "%s" runs.', async (line) => {
    expect((await post('/', line.split(' '), 'reader')).json).toHaveProperty('result')
  })

  test.each([
    ['set shared y', 'set'],
    ['DEL shared', 'del'],
    ['getex shared PERSIST', 'getex'],
    ['eval return(1) 0', 'eval'],
    ['evalsha x 0', 'evalsha'],
    ['eval_ro return(1) 0', 'eval_ro'],
    ['EVALSHA_RO x 0', 'evalsha_ro'],
    ['fcall_ro f 0', 'fcall_ro'],
    ['script load return(1)', 'script'],
    ['keys *', 'keys'],
    ['flushall', 'flushall'],
    ['publish c m', 'publish'],
    ['sort shared STORE x', 'sort'],
    ['nonesuch', 'nonesuch'],
  ])('The command "%s" is refused.', async (line, name) => {
    const { status, json } = await post('/', line.split(' '), 'reader')
    expect([status, json]).toEqual([400, refused(name)])
  })

  test('With readOnlyScripts it runs scripts that read, and none that write.', async () => {
    const bridge = await startBridge({
      ...stack.target,
      tokens: [{ token: 'reader', readOnly: true }],
      readOnlyScripts: true,
    })
    const client = new Redis({ url: bridge.url, token: 'reader' })
    expect(await client.evalRo(`return redis.call('get', KEYS[1])`, ['shared'], [])).toBe('x')
    await expect(client.evalRo(`redis.call('set', KEYS[1], 'y')`, ['shared'], [])).rejects.toThrow(
      'Write commands are not allowed',
    )
    await expect(client.eval('return 1', [], [])).rejects.toThrow('NOPERM')
    await bridge.close()
  })

  test('A pipeline runs its reads and refuses its writes; a transaction with a write is refused.', async () => {
    const body = [
      ['get', 'shared'],
      ['set', 'shared', 'y'],
    ]
    expect((await post('/pipeline', body, 'reader')).json).toEqual([
      { result: 'x' },
      refused('set'),
    ])
    expect(await post('/multi-exec', body, 'reader')).toMatchObject({
      status: 400,
      json: refused('set'),
    })
    expect((await post('/', ['get', 'shared'], 'writer')).json).toEqual({ result: 'x' })
  })

  test('Streams are refused.', async () => {
    expect((await post('/subscribe/c', [], 'reader')).json).toEqual(refused('subscribe'))
    expect((await post('/monitor', [], 'reader')).json).toEqual(refused('monitor'))
  })

  test('The client @upstash/redis reads with it and reports the refusal.', async () => {
    const client = new Redis({ url: stack.bridge.url, token: 'reader' })
    expect(await client.get('shared')).toBe('x')
    await expect(client.set('shared', 1)).rejects.toThrow('NOPERM')
  })
})

describe('a file of tokens', () => {
  test('Each line is a token; read-only follows the token.', () => {
    const text = '# the gateway\none\n\n  two   read-only\r\nthree\n'
    expect(readTokens(text)).toEqual([
      { token: 'one', readOnly: false },
      { token: 'two', readOnly: true },
      { token: 'three', readOnly: false },
    ])
  })

  test.each([
    ['', 'expected at least one token'],
    ['# none\n', 'expected at least one token'],
    ['ok\nsecret write', 'line 2: expected a token, or a token and "read-only"'],
    ['secret read-only yes', 'line 1'],
  ])('The file %j is refused with a message that contains no token.', (text, message) => {
    expect(() => readTokens(text)).toThrow(message)
    expect(() => readTokens(text)).not.toThrow('secret')
  })

  test('The command line reads the file, and puts its tokens after its own.', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'bridge-tokens-'))
    const file = join(folder, 'tokens')
    await writeFile(file, 'from-file read-only\n')
    expect(parseCli(['--token', 'a', '--token', 'b', '--token-file', file])).toMatchObject({
      token: 'a',
      tokens: [{ token: 'a' }, { token: 'b' }, { token: 'from-file', readOnly: true }],
    })
    expect(parseCli(['--token-file', file])).toMatchObject({ token: 'from-file' })
    await writeFile(file, '')
    expect(() => parseCli(['--token-file', file])).toThrow('expected at least one token')
    await rm(folder, { recursive: true })
  })
})
