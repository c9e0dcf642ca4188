/** `cost.response: 'bytes'`: the size of the response is its cost. */
import { setImmediate as turn } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { describe, expect, test, vi } from 'vitest'
import { bodies } from '../../../../src/features/bodies/index.ts'
import { meterBody } from '../../../../src/features/bodies/meter.ts'
import { rateLimiter } from '../../../../src/hosts/app/middleware.ts'
import { rateLimiter as forNode } from '../../../../src/hosts/node/node.ts'
import { event, limitWith, streamed } from '../../../support/metered.ts'

const BYTES = { response: 'bytes' }
const limit = limitWith(BYTES)

/** The bytes that a whole body is charged. It must arrive unchanged. */
async function sizeOf(parts: (string | Uint8Array)[], headers = {}, cost: object = BYTES) {
  const one = streamed(limitWith(cost), headers)!
  for (const part of parts) one.write(part)
  one.close()
  expect(Buffer.from(await one.response.arrayBuffer())).toEqual(
    Buffer.concat(parts.map((part) => Buffer.from(part as string))),
  )
  return (await one.kept)[0]
}

describe('The cost of a whole body', () => {
  test.each<[string, (string | Uint8Array)[], object, number]>([
    ['in one part', ['12345'], {}, 5],
    ['in chunks', ['123', '', '45678'], { 'content-type': 'text/html' }, 8],
    ['with characters of several bytes', ['äöü€'], {}, 9],
    ['that is compressed', [gzipSync('x'.repeat(1000))], { 'content-encoding': 'gzip' }, 29],
    ['that is empty', [], {}, 0],
  ])('%s is its bytes on the wire.', async (_, parts, headers, bytes) => {
    expect(await sizeOf(parts, headers)).toBe(bytes)
  })

  test('is at most max.', async () => {
    expect(await sizeOf(['1234567890'], {}, { ...BYTES, max: 8 })).toBe(8)
  })
})

describe('A response without a body', () => {
  /** The units kept of a charge of one unit. */
  function keptOf(answer: Response, isSent = true) {
    const end = vi.fn()
    const take = () => Promise.reject(new Error('unexpected call'))
    const response = meterBody(answer, { limits: [limit], isSent, take, end }, 1_000)
    return { response, kept: end.mock.calls.flatMap(([kept]) => [...kept.values()]) }
  }

  test('costs nothing.', () => {
    const answer = new Response(null, { status: 204 })
    expect(keptOf(answer)).toEqual({ response: answer, kept: [0] })
  })

  test('to HEAD costs nothing, although the handler has made one.', () => {
    const answer = new Response('12345')
    expect(keptOf(answer, false)).toEqual({ response: answer, kept: [0] })
  })

  test('because it opens a WebSocket keeps its charge.', () => {
    const answer = Object.assign(new Response(null), { webSocket: {} })
    expect(keptOf(answer)).toEqual({ response: undefined, kept: [] })
  })
})

describe('A body that is broken off', () => {
  test('by the origin costs what the client got.', async () => {
    const one = streamed(limit, {})!
    const reader = one.response.body!.getReader()
    one.write('1234')
    expect((await reader.read()).value).toHaveLength(4)
    one.close(new Error('broken off'))
    await expect(reader.read()).rejects.toThrow()
    expect(await one.kept).toEqual([4])
  })

  test('by the client costs what has passed, and the origin is stopped.', async () => {
    const one = streamed(limit, {})!
    const reader = one.response.body!.getReader()
    one.write('1234')
    await reader.read()
    one.write('567')
    await reader.read()
    await reader.cancel()
    expect(await one.kept).toEqual([7])
    await turn()
    expect(one.isCancelled()).toBe(true)
  })

  test('by the client does not cost a part that has not passed.', async () => {
    const one = streamed(limit, {})!
    const reader = one.response.body!.getReader()
    one.write('1234')
    await reader.read()
    one.write('567')
    await turn()
    await reader.cancel()
    expect(await one.kept).toEqual([4])
  })
})

test('One response is charged its bytes by one policy and its tokens by another.', async () => {
  const tokens = limitWith({ usage: 'usage.total_tokens', max: 100 })
  const body = event({ usage: { total_tokens: 7 } })
  const { promise, resolve } = Promise.withResolvers<[boolean, number][]>()
  const response = meterBody(
    new Response(body, { headers: { 'content-type': 'text/event-stream' } }),
    {
      limits: [tokens, limit],
      isSent: true,
      take: () => Promise.reject(new Error('unexpected call')),
      end: (kept) => resolve([...kept].map(([{ terms }, units]) => [!terms.cost.usage, units])),
    },
    1_000,
  )!
  expect(await response.text()).toBe(body)
  expect(await promise).toEqual([
    [true, body.length],
    [false, 7],
  ])
})

test('A status that does not count is refunded without a look at its body.', () => {
  const successes = limitWith(BYTES, { countOnly: '2xx' })
  const take = () => Promise.reject(new Error('unexpected call'))
  const metering = { limits: [successes], isSent: true, take, end: () => {} }
  expect(meterBody(new Response('gone', { status: 404 }), metering, 1_000)).toBeUndefined()
})

describe('the configuration', () => {
  const policies = [{ name: 'egress', limit: 1000, window: '1h' as const, cost: BYTES }]

  test('needs bodies().', () => {
    expect(() => rateLimiter({ policies })).toThrow(
      "policies[0].cost: expected use: [bodies()], with import { bodies } from 'sluice/features'",
    )
  })

  test('is refused where the body is not seen.', () => {
    expect(() => forNode({ policies, use: [bodies()], clientAddress: 'socket' })).toThrow(
      /policies\[0\]\.cost\.response: expected nothing, because sluice\/node does not see the body/,
    )
  })

  test('must charge something before the response.', () => {
    const free = [{ ...policies[0]!, cost: { ...BYTES, otherwise: 0 } }]
    expect(() => rateLimiter({ policies: free, use: [bodies()] })).toThrow(
      'policies[0].cost.otherwise: expected at least 1 with bytes',
    )
  })
})
