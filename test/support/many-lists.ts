/** Lists of requests for `decideEach`, and a Redis behind the bridge. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createClient } from 'redis'
import { startBridge } from 'sluice-upstash-bridge'
import { afterAll, beforeAll } from 'vitest'
import { allParts } from '../../cli/replay/decide/script-parts.ts'
import { StoreError } from '../../src/core/base/errors.ts'
import type { StoreReply, StoreRequest } from '../../src/core/connection/store.ts'
import { createUpstashStore } from '../../src/core/connection/upstash/upstash.ts'
import { borrowRedis } from './borrow-redis.ts'
import { newSubject } from './subjects.ts'

/** Starts Redis and the bridge for the tests of one file. */
export function useBridge() {
  const connect = async () => createClient({ url: running.redis.url }).connect()
  const running = {} as {
    redis: Awaited<ReturnType<typeof borrowRedis>>
    bridge: Awaited<ReturnType<typeof startBridge>>
    client: Awaited<ReturnType<typeof connect>>
  }

  beforeAll(async () => {
    running.redis = await borrowRedis()
    running.bridge = await startBridge({ redis: running.redis.url, token: 'the-right-token' })
    running.client = await connect()
  })
  afterAll(async () => {
    running.client.destroy()
    await running.bridge.close()
    await running.redis.stop()
  })

  const newStore = (options: Partial<Parameters<typeof createUpstashStore>[0]> = {}) =>
    createUpstashStore({
      url: running.bridge.url,
      token: running.bridge.token,
      deadlineMs: 10_000,
      lua: allParts,
      ...options,
    })

  /** The number of HTTP requests that `run` makes. */
  async function requestsOf(run: () => Promise<unknown>): Promise<number> {
    const { http } = running.bridge.stats()[running.bridge.token]!
    await run()
    return running.bridge.stats()[running.bridge.token]!.http - http
  }

  /** A server that replies to the n-th request with the result of `answer` for its commands. A redirect leads to the bridge. */
  async function answering(
    answer: (commands: string[][], number: number) => unknown,
    { status = 200, delayMs = 0 } = {},
  ) {
    let number = 0
    const server = createServer(async (request, response) => {
      let text = ''
      for await (const chunk of request) text += chunk
      const body = answer(JSON.parse(text), number++)
      setTimeout(() => {
        response.writeHead(status, { location: running.bridge.url })
        response.end(typeof body === 'string' ? body : JSON.stringify(body))
      }, delayMs)
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return {
      url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      requests: () => number,
      [Symbol.dispose]: () => server.closeAllConnections(),
    }
  }

  return { running, newStore, requestsOf, answering }
}

export const policy: StoreRequest['limits'][number]['terms'] = {
  tag: 't',
  algorithm: 'fixed-window',
  limit: 100,
  windowMs: 3_600_000,
  burst: 100,
  align: 'first-request',
  localShare: 1,
}
export const ask = (
  mode: Exclude<StoreRequest['mode'], 'override'>,
  subjects: string[],
  row: Partial<StoreRequest['limits'][number]> = {},
): StoreRequest => ({
  mode,
  limits: subjects.map((subject) => ({ subject, terms: policy, cost: 1, ...row })),
})
export const newSubjects = (count: number) => Array.from({ length: count }, newSubject)

/** The remaining units of each subject, or the code of the error. */
export const outcomes = (replies: (StoreReply | StoreError)[]) =>
  replies.map((reply) =>
    reply instanceof StoreError
      ? reply.code
      : reply.states.flat().map(({ remaining }) => remaining),
  )

/** 100 lists with three subjects each: 300 keys, which need three calls of the script. */
export const hundred = () => Array.from({ length: 100 }, () => [ask('take', newSubjects(3))])

/** Two lists that do not fit into one call. */
export const two = () => [[ask('take', newSubjects(100))], [ask('take', newSubjects(100))]]
