/** Costs in the body of a response, through the whole stack: an origin that streams like OpenAI's API, workerd and Redis. */
import { get as httpGet } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { PolicyOptions } from '../../src/core/config/options.ts'
import type { Stack } from '../../tools/stack.ts'
import { type ChatServer, chatBody, startChatServer } from '../support/chat-server.ts'
import { isLong } from '../support/long.ts'
import { startStack } from '../support/stack.ts'

/** Each policy has a budget of its own under /<name>/…. `/<name>/left` costs 0, so it shows what remains. */
const policy = (
  name: string,
  limit: number,
  cost: { otherwise?: number; max: number; cut?: boolean; body?: string },
  options: Partial<PolicyOptions> = {},
): PolicyOptions => ({
  name,
  algorithm: 'fixed-window',
  limit,
  window: '1d',
  key: 'global',
  match: { path: `/${name}/*` },
  cost: { usage: 'usage.total_tokens', rules: [{ path: `/${name}/left`, cost: 0 }], ...cost },
  ...options,
})

const policies = [
  policy('exact', 10_000, { otherwise: 500, max: 4000 }),
  policy('many', 5_000, { otherwise: 120, max: 150 }),
  policy('cut', 4000, { otherwise: 20, max: 4000, cut: true }),
  policy('share', 3_000, { otherwise: 150, max: 300, cut: true }),
  policy('finish', 3_000, { max: 270 }),
  policy('hang', 10_000, { otherwise: 50, max: 4000 }),
  policy('bytes', 10_000, { otherwise: 50, max: 4000 }),
  {
    ...policy('egress', 1_000_000, { max: 1 }),
    cost: { response: 'bytes', rules: [{ path: '/egress/left', cost: 0 }] },
  },
  policy('failed', 10_000, { otherwise: 50, max: 4000 }, { countOnly: '2xx' }),
  policy('down', 10_000, { otherwise: 50, max: 4000 }, { onStoreError: 'allow' }),
]

let stack: Stack
let chat: ChatServer
beforeAll(async () => {
  chat = await startChatServer()
  stack = await startStack({ config: { policies }, env: { ORIGIN: chat.url, BODIES: '{}' } })
})
afterAll(async () => {
  await stack?.stop()
  await chat?.close()
})

/** Sends a request directly to workerd, because Miniflare's entry buffers small parts of a body. */
const send = (path: string, init: RequestInit = {}) =>
  fetch(stack.worker.directUrl + path, { ...init, headers: { 'cf-connecting-ip': '203.0.113.7' } })
const get = async (path: string) => {
  const response = await send(path)
  return { status: response.status, headers: response.headers, body: await response.text() }
}
const left = async (name: string) =>
  Number(/;r=(\d+)/.exec((await get(`/${name}/left?tokens=0`)).headers.get('ratelimit')!)![1])
const leftOf = (name: string) => expect.poll(() => left(name))

test('The usage of a stream and of a JSON response is charged exactly.', async () => {
  expect((await get('/exact/chat?tokens=150')).body).toBe(chatBody(150))
  await leftOf('exact').toBe(10_000 - 150)
  await get('/exact/chat?tokens=40&stream=false')
  await leftOf('exact').toBe(10_000 - 150 - 40)
  await get('/exact/chat?tokens=1200')
  expect(chat.accepted()).toBe('identity')
  await leftOf('exact').toBe(10_000 - 150 - 40 - 1200)
})

test.each(['members', 'longer'])(
  'A response in gzip that is not read to its end passes completely (%s).',
  async (kind) => {
    const path = `/exact/chat?tokens=40&stream=false&gzip=${kind}`
    const bytes = (url: string) =>
      new Promise<Buffer>((resolve, reject) => {
        httpGet(url, { headers: { 'cf-connecting-ip': '203.0.113.7' } }, async (response) => {
          const parts: Buffer[] = []
          for await (const part of response) parts.push(part)
          resolve(Buffer.concat(parts))
        }).on('error', reject)
      })
    const [passed, sent] = await Promise.all([
      bytes(stack.worker.directUrl + path),
      bytes(chat.url + path),
    ])
    expect(passed).toEqual(sent)
  },
)

test('Of many concurrent streams, as many pass as the budget and what each may use beyond its reservation.', async () => {
  const before = chat.sent()
  const answers = await Promise.all(
    Array.from({ length: isLong ? 500 : 60 }, () => get('/many/chat?tokens=150&ms=1')),
  )
  const admitted = answers.filter(({ status }) => status === 200)
  for (const { body } of admitted) expect(body).toBe(chatBody(150))
  // Admit-then-count would admit all: 9,000 tokens or more, almost twice the budget.
  const spent = chat.sent() - before
  expect(spent).toBe(admitted.length * 150)
  expect(spent).toBeGreaterThan(5_000 - 150)
  expect(spent).toBeLessThanOrEqual(5_000 + Math.ceil(5_000 / 120) * (150 - 120))
}, 120_000)

test('Of many concurrent streams with cut, none spends more than one chunk beyond the budget.', async () => {
  const answers = await Promise.all(
    Array.from({ length: isLong ? 200 : 60 }, () => get('/cut/chat?tokens=300&ms=2')),
  )
  const admitted = answers.filter(({ status }) => status === 200)
  const passed = admitted.map(({ body }) => body.split('"content"').length - 1)
  const spent = passed.reduce((sum, tokens) => sum + tokens, 0)
  expect(spent).toBeGreaterThanOrEqual(3_900)
  expect(spent).toBeLessThanOrEqual(4_000 + admitted.length * 20)
  for (const { body } of admitted) {
    expect(body).toMatch(
      /\n\n(event: error\ndata: \{.*"code":"rate_limit_exceeded".*|data: \[DONE\])\n\n$/,
    )
  }
  await leftOf('cut').toBe(0)
  await expect.poll(chat.inFlight).toBe(0) // the origin stops too
}, 120_000)

/** What 20 streams of 270 tokens get of a budget of 3,000. */
async function twenty(name: string) {
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => get(`/${name}/chat?tokens=270&ms=1`)),
  )
  const admitted = answers.filter(({ status }) => status === 200)
  const whole = admitted.filter(({ body }) => body === chatBody(270))
  const refused = answers.filter(({ status }) => status === 429)
  return { admitted: admitted.length, whole: whole.length, refused }
}

test('20 streams on a budget for 11 are all cut, if each reserves a part of what it uses.', async () => {
  const { admitted, whole } = await twenty('share')
  expect(admitted).toBe(20)
  expect(whole).toBe(0)
}, 120_000)

test('20 streams on a budget for 11 are 11 whole streams, if each reserves what it may use.', async () => {
  const { admitted, whole, refused } = await twenty('finish')
  expect([admitted, whole, refused.length]).toEqual([11, 11, 9])
  for (const { headers } of refused) expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
  await leftOf('finish').toBe(30)
}, 120_000)

test('A client that hangs up is charged what has passed.', async () => {
  const client = new AbortController()
  const response = await send('/hang/chat?tokens=1000&ms=5', { signal: client.signal })
  const reader = response.body!.getReader()
  let text = ''
  while (text.split('"content"').length <= 120)
    text += new TextDecoder().decode((await reader.read()).value)
  client.abort()
  await expect.poll(chat.inFlight).toBe(0)
  await expect.poll(() => left('hang')).toBeLessThan(10_000 - 119)
  await sleep(200)
  expect(await left('hang')).toBeGreaterThan(10_000 - 400)
})

test('The bytes of a response are charged exactly: in chunks, of a known length, without a body.', async () => {
  const { headers } = await get('/egress/chat?tokens=150')
  expect(headers.get('ratelimit-policy')).toBe('"egress";q=1000000;qu="content-bytes";w=86400')
  expect(headers.get('ratelimit')).toMatch(/^"egress";r=999999;t=\d+$/)
  await leftOf('egress').toBe(1_000_000 - chatBody(150).length)
  const json = await get('/egress/chat?tokens=40&stream=false')
  expect(json.headers.get('content-length')).toBe(String(json.body.length))
  const expected = 1_000_000 - chatBody(150).length - json.body.length
  await leftOf('egress').toBe(expected)
  const path = `${stack.worker.directUrl}/egress/chat?stream=false`
  await fetch(path, { method: 'HEAD', headers: { 'cf-connecting-ip': '203.0.113.7' } })
  await leftOf('egress').toBe(expected)
})

test('A client that breaks off is charged the bytes that it got.', async () => {
  const before = await left('egress')
  const client = new AbortController()
  const response = await send('/egress/chat?tokens=1000&ms=5', { signal: client.signal })
  const reader = response.body!.getReader()
  let bytes = 0
  while (bytes < 10_000) bytes += (await reader.read()).value!.length
  client.abort()
  await expect.poll(chat.inFlight).toBe(0)
  await expect.poll(() => left('egress')).toBeLessThanOrEqual(before - bytes)
  await sleep(200)
  // What was on its way: much less than the rest, about 70,000 bytes.
  expect(await left('egress')).toBeGreaterThan(before - bytes - 10_000)
})

test('A response that does not count is refunded completely.', async () => {
  await get('/failed/chat?tokens=150&stream=false&status=500')
  await leftOf('failed').toBe(10_000)
})

test('If Redis is down when a response ends, its client still gets the whole response.', async () => {
  const response = await send('/down/chat?tokens=50&ms=10')
  await stack.bridge.close()
  expect(await response.text()).toBe(chatBody(50))
})
