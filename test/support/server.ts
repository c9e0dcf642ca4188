import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { afterAll, beforeAll, expect } from 'vitest'
import { script } from '../../cli/replay/decide/script-parts.ts'
import type { Idempotency, StoreReply, StoreRequest } from '../../src/core/connection/store.ts'
import { type CompiledCall, compiledCalls } from '../../src/core/connection/upstash/sets.ts'
import { billOf } from '../../src/features/observe/measure.ts'
import type { ModelRequest } from '../model/model.ts'
import { borrowRedis } from './borrow-redis.ts'
import { decode, encode } from './coding.ts'
import { completeRequests } from './complete-limit.ts'
import { type Objects, useObjects } from './objects.ts'
import { type Connection, openConnection } from './redis-connection.ts'

/** A script without Upstash's flag, which stock Redis refuses. */
const withoutFlag = (text: string) => text.replace(/^#!lua[^\n]*\n/, '')
const stockScript = withoutFlag(script)

/** One call as an EVAL command, for a client that has not loaded the script. */
export function callOf(requests: ModelRequest[]): string[] {
  const { keys, args } = encode(requests as StoreRequest[])
  return ['EVAL', stockScript, `${keys.length}`, ...keys, ...args]
}

export interface Server {
  /** Set if the server is not Redis. */
  objects?: Objects
  /** The number of decisions by a compiled script. */
  compiled(): number
  /** Sends one command. All commands of one tick go together, in order. */
  send(...command: string[]): Promise<unknown>
  /** Calls the script. Returns the raw reply: a list of integers, or an error. */
  evaluate(keys: string[], args: string[]): Promise<unknown>
  /** Decides with the general script and, where there is one, every other time with a compiled script: both serve the same keys. */
  decide(requests: ModelRequest[], now?: number, once?: Idempotency): Promise<StoreReply>
  /**
   * How often Redis executed each command for a call. Upstash bills each of them, and the bill that is computed from the replies must be
   * the same. No other call may run meanwhile.
   */
  commands(...call: Parameters<Server['decide']>): Promise<Record<string, number>>
  /** Opens another connection. */
  connect(): Promise<Connection>
}

/**
 * Starts a Redis with the script loaded, for the tests of one file. With `TEST_STORE=durable-objects` starts Durable Objects, which have
 * no commands.
 */
export const useServer = (): Server =>
  process.env.TEST_STORE === 'durable-objects' ? objectsServer() : redisServer()

/** Starts Durable Objects for the tests of one file. */
export function objectsServer(): Server {
  const objects = useObjects()
  const fail = async () => expect.fail('This test needs Redis.')
  return {
    objects,
    compiled: () => 0,
    send: fail,
    evaluate: fail,
    commands: fail,
    connect: fail,
    decide(requests, now, once) {
      const complete = completeRequests(requests, now ?? Date.now()) as StoreRequest[]
      return objects.store.decide(complete, {
        ...(now !== undefined && { now }),
        ...(once && { idempotency: once }),
      })
    },
  }
}

function redisServer(): Server {
  let redis: Awaited<ReturnType<typeof borrowRedis>> | undefined
  const clients: Connection[] = []
  let sha = ''
  let turn = 0
  let byCompiled = 0
  let billed = 0

  beforeAll(async () => {
    redis = await borrowRedis()
    const client = await server.connect()
    sha = String(await client.sendCommand(['SCRIPT', 'LOAD', stockScript]))
  })
  afterAll(async () => {
    for (const client of clients) client.destroy()
    await redis?.stop()
  })

  /** Loads and calls a script, in one tick. */
  function run({ script, keys, args }: CompiledCall): Promise<unknown> {
    const text = withoutFlag(script.text)
    const name = createHash('sha1').update(text).digest('hex')
    void server.send('SCRIPT', 'LOAD', text)
    return server.send('EVALSHA', name, `${keys.length}`, ...keys, ...args)
  }

  const server: Server = {
    compiled: () => byCompiled,
    send: (...command) => clients[0]!.sendCommand(command),
    evaluate: (keys, args) => server.send('EVALSHA', sha, `${keys.length}`, ...keys, ...args),
    async decide(requests, now, once) {
      const complete = completeRequests(requests, now ?? Date.now()) as StoreRequest[]
      turn += 1
      const compiled = once || turn % 2 === 0 ? undefined : compiledCalls()(complete, now)
      const ran = compiled && (await run(compiled))
      const answer = ran === 'declined' ? undefined : ran
      if (answer) byCompiled += 1
      const { keys, args } = encode(complete, now, once)
      const text = answer ?? (await server.evaluate(keys, args))
      billed = billOf(String(text), now !== undefined)
      const reply = decode(text, complete, once)
      assert(reply, 'The reply of the script violates its contract.')
      return reply
    },
    async commands(...call) {
      await server.send('CONFIG', 'RESETSTAT')
      await server.decide(...call)
      const stats = String(await server.send('INFO', 'commandstats'))
      const counted = [...stats.matchAll(/cmdstat_([^:]+):calls=(\d+)/g)]
        .filter(([, name]) => !/^(config|info|script)/.test(name!))
        .map(([, name, calls]) => [name, Number(calls)] as const)
      expect(billed).toBe(counted.reduce((sum, [, calls]) => sum + calls, 0))
      return Object.fromEntries(counted)
    },
    async connect() {
      const client = await openConnection(redis!.url)
      clients.push(client)
      return client
    },
  }
  return server
}
