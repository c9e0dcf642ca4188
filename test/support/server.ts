import { startRedis } from 'sluice-upstash-bridge'
import { afterAll, beforeAll } from 'vitest'
import type { Idempotency, StoreReply, StoreRequest } from '../../src/store/store.ts'
import { decode, encode, script } from '../../src/store/upstash/script.ts'
import type { ModelRequest } from '../model/model.ts'
import { completeRequests } from './complete-limit.ts'
import { type Connection, openConnection } from './redis-connection.ts'

/** Stock Redis refuses Upstash's flag. */
export const stockScript = script.replace(/^#!lua[^\n]*\n/, '')

/** One call as a whole command, for a client that has not loaded the script. */
export function callOf(requests: ModelRequest[]): string[] {
  const { keys, args } = encode(requests as StoreRequest[])
  return ['EVAL', stockScript, `${keys.length}`, ...keys, ...args]
}

export interface Server {
  /** One command. Commands sent in the same tick travel together, in their order. */
  send(...command: string[]): Promise<unknown>
  /** One call of the script, as it comes back: a list of integers, or an error. */
  evaluate(keys: string[], args: string[]): Promise<unknown>
  decide(requests: ModelRequest[], now?: number, once?: Idempotency): Promise<StoreReply>
  /** A client beside the others. */
  connect(): Promise<Connection>
}

/** A Redis of its own for the tests of one file, with the script loaded. */
export function useServer(): Server {
  let redis: Awaited<ReturnType<typeof startRedis>> | undefined
  const clients: Connection[] = []
  let sha = ''

  beforeAll(async () => {
    redis = await startRedis()
    const client = await server.connect()
    sha = String(await client.sendCommand(['SCRIPT', 'LOAD', stockScript]))
  })
  afterAll(async () => {
    for (const client of clients) client.destroy()
    await redis?.stop()
  })

  const server: Server = {
    send: (...command) => clients[0]!.sendCommand(command),
    evaluate: (keys, args) => server.send('EVALSHA', sha, `${keys.length}`, ...keys, ...args),
    async decide(requests, now, once) {
      const known = completeRequests(requests, now ?? Date.now()) as StoreRequest[]
      const { keys, args } = encode(known, now, once)
      const reply = decode(await server.evaluate(keys, args), known, once)
      if (!reply) throw new Error('the script answered something else than its contract says')
      return reply
    },
    async connect() {
      const client = await openConnection(redis!.url)
      clients.push(client)
      return client
    },
  }
  return server
}
