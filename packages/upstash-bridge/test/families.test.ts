import { Redis } from '@upstash/redis'
import { ErrorReply } from 'redis'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { refusal } from '../src/commands.ts'
import { LATER, SAMPLES, TRIED_ELSEWHERE } from './samples.ts'
import { type BridgeStack, CLUSTER, startBridgeStack, withoutName } from './stack.ts'

/** Commands go to `stack` through the bridge, and to `other` directly. The replies must be the same. */
let stack: BridgeStack
let other: BridgeStack
beforeAll(async () => {
  stack = await startBridgeStack()
  other = await startBridgeStack()
})
afterAll(async () => {
  await stack?.stop()
  await other?.stop()
})

beforeEach(async () => {
  for (const { direct } of [stack, other]) await direct('FLUSHALL')
})

/** The commands. On a cluster all keys get one hash tag, and SCAN returns another cursor. */
async function samples(): Promise<string[][]> {
  if (!CLUSTER) return SAMPLES
  const tagged = SAMPLES.filter(([name]) => name !== 'scan').map(async (command) => {
    const found = await stack.direct('COMMAND', 'GETKEYS', ...command).catch(() => [])
    const keys = command[0] === 'spublish' ? [command[1]] : (found as string[])
    return command.map((part, at) => (at > 0 && keys.includes(part) ? `${part}{b}` : part))
  })
  return Promise.all(tagged)
}

const directly = (command: string[]) =>
  other.direct(...command).catch((error: Error) => ({ error: error.message }))

describe('every command of Redis', () => {
  test('Every command of Redis is tested here or refused over REST.', async () => {
    const names = (await stack.direct('COMMAND', 'LIST')) as string[]
    const tried = new Set([...SAMPLES.map(([name]) => name), ...TRIED_ELSEWHERE])
    const untested = names.filter((name) => {
      const [command = ''] = name.split('|')
      return !tried.has(command) && !LATER.has(name.toLowerCase()) && !refusal(name.split('|'))
    })
    expect(untested).toEqual([])
  })

  test('Each command returns the reply of Redis over plain HTTP.', async () => {
    for (const command of await samples()) {
      const expected = await directly(command)
      const { result, error } = await stack.command(...command)
      const answer = error === undefined ? result : { error }
      expect([command.join(' '), plain(answer)]).toEqual([command.join(' '), plain(expected)])
    }
  })

  test('Each command returns the reply of Redis to @upstash/redis.', async () => {
    const client = new Redis({
      url: stack.bridge.url,
      token: stack.bridge.token,
      automaticDeserialization: false,
    })
    for (const command of await samples()) {
      const expected = await directly(command)
      const answer = await client.exec(command as [string, ...string[]]).catch((error: Error) => ({
        error: error.message.replace(/^Command failed: |, command.*/gs, ''),
      }))
      expect([command.join(' '), plain(answer)]).toEqual([command.join(' '), plain(expected)])
    }
  })

  test('Commands with variable replies, such as TIME, return a reply.', async () => {
    await stack.command('set', 'only', 'x', 'ex', 100)
    expect(await stack.command('randomkey')).toEqual({ result: 'only' })
    expect((await stack.http('/ttl/only')).text).toMatch(/^\{"result":(9[5-9]|100)\}$/)
    expect((await stack.command('time')).result).toEqual([
      expect.stringMatching(/^\d{10}$/),
      expect.stringMatching(/^\d{1,6}$/),
    ])
    expect((await stack.command('info', 'server')).result).toContain('redis_version:')
    expect((await stack.command('lolwut', 'version', 5)).result).toMatch(/(Redis|Valkey) ver\. \d/)
  })
})

describe('DUMP and RESTORE', () => {
  test('DUMP and RESTORE copy a value as bytes.', async () => {
    await stack.command('rpush', 'source', 'a', 'b', '😀')
    const dumped = await fetch(`${stack.bridge.url}/dump/source`, {
      headers: { authorization: 'Bearer dev', 'upstash-response-format': 'resp2' },
    })
    const reply = Buffer.from(await dumped.arrayBuffer())
    const value = reply.subarray(reply.indexOf('\n') + 1, -2)
    const restored = await stack.http('/restore/copy/0', { method: 'POST', body: value })
    expect(restored.json).toEqual({ result: 'OK' })
    expect(await stack.command('lrange', 'copy', 0, -1)).toEqual({ result: ['a', 'b', '😀'] })
  })
})

/** Converts a reply to its JSON form, with errors in the form of all servers. The direct client has errors as objects. */
function plain(value: unknown): unknown {
  if (value instanceof ErrorReply) return ofAll(value.message)
  if (isError(value)) return { error: ofAll(value.error) }
  return Array.isArray(value) ? value.map(plain) : value
}

/** The bridge has the NOSCRIPT of Redis on Valkey, too. */
const ofAll = (message: string) =>
  withoutName(message).replace(/^(NOSCRIPT No matching script\.) Please use EVAL\.$/, '$1')

const isError = (value: unknown): value is { error: string } =>
  typeof Object(value).error === 'string'
