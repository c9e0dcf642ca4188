import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { event, limitWith, streamed } from '../../../support/metered.ts'

const TOTAL = { usage: 'usage.total_tokens', otherwise: 500, max: 4000 }
const SSE = { 'content-type': 'text/event-stream; charset=utf-8' }
const JSON_TYPE = { 'content-type': 'application/json' }

/** The cost of a body, which must arrive unchanged. */
async function costOf(
  parts: (string | Uint8Array)[],
  headers: Record<string, string> = SSE,
  cost: object = TOTAL,
) {
  const one = streamed(limitWith(cost), headers)!
  for (const part of parts) one.write(part)
  one.close()
  const received = Buffer.from(await one.response.arrayBuffer())
  expect(received).toEqual(Buffer.concat(parts.map((part) => Buffer.from(part as string))))
  return (await one.kept)[0]
}

const chat = (tokens: number) => [
  event({ choices: [{ delta: { role: 'assistant', content: '' } }], usage: null }),
  event({ choices: [{ delta: { content: 'Hello' } }], usage: null }),
  event({ choices: [], usage: { prompt_tokens: 9, total_tokens: tokens } }),
  event('[DONE]'),
]

test('The usage of an OpenAI chat completion that streams is its cost.', async () => {
  expect(await costOf(chat(150))).toBe(150)
  expect(await costOf([chat(1200).join('')])).toBe(1200)
  expect(await costOf([...chat(1200).join('')].map((byte) => byte))).toBe(1200)
})

test('The usage in the events of the OpenAI Responses API is the cost.', async () => {
  const parts = [
    'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":"Hi"}\n\n',
    'event: response.completed\ndata: {"type":"response.completed","response":{"usage":{"total_tokens":321}}}\n\n',
  ]
  expect(await costOf(parts)).toBe(321)
})

test('The usage is found under a name that is written with an escape.', async () => {
  const written = JSON.stringify({ usage: { total_tokens: 1200 } }).replace('_', '\\u005F')
  expect(await costOf([event(written)])).toBe(1200)
})

test('Two paths add up: the last input and output tokens of an Anthropic stream.', async () => {
  const cost = { ...TOTAL, usage: ['usage.input_tokens', 'usage.output_tokens'] }
  const parts = [
    event({ type: 'message_start', message: { usage: { input_tokens: 25, output_tokens: 1 } } }),
    event({ type: 'ping' }),
    event({ type: 'content_block_delta', delta: { text: 'Hello' } }),
    event({ type: 'message_delta', usage: { output_tokens: 15 } }),
    event({ type: 'message_stop' }),
  ]
  expect(await costOf(parts, SSE, cost)).toBe(40)
})

test.each([
  ['a JSON response', '{"usage":{"total_tokens":150}}', JSON_TYPE, 150],
  [
    'a type with the suffix +json',
    '{"usage":{"total_tokens":7}}',
    { 'content-type': 'application/vnd.api+json' },
    7,
  ],
  ['JSON without usage', '{"usage":{}}', JSON_TYPE, 500],
  ['JSON with a text as usage', '{"usage":{"total_tokens":"7"}}', JSON_TYPE, 500],
  ['JSON with a negative usage', '{"usage":{"total_tokens":-7}}', JSON_TYPE, 500],
  ['an inherited property', '{"usage":{"__proto__":{"total_tokens":7}}}', JSON_TYPE, 500],
  ['text that is not JSON', 'usage: "total_tokens"', JSON_TYPE, 500],
  ['an empty body', '', JSON_TYPE, 500],
  [
    'JSON above the bound',
    `{"usage":{"total_tokens":7},"text":"${'x'.repeat(1000)}"}`,
    JSON_TYPE,
    500,
  ],
  ['a usage above max', '{"usage":{"total_tokens":9000}}', JSON_TYPE, 4000],
  ['a usage of 0', '{"usage":{"total_tokens":0}}', JSON_TYPE, 0],
  ['a stream without usage', event('{}').repeat(3), SSE, 500],
  ['a long stream without usage', event('{}').repeat(700), SSE, 700],
  ['a stream without its last empty line', 'data: {"usage":{"total_tokens":33}}', SSE, 33],
  ['a stream with CR LF', 'data: {"usage":{"total_tokens":34}}\r\n\r\n', SSE, 34],
  ['an event above the bound', `data: ${'x'.repeat(2000)}\n\n`, SSE, 500],
])('The cost of %s.', async (_, body, headers, units) => {
  expect(await costOf([body], headers)).toBe(units)
})

test('A fraction is multiplied by its weight and rounded up.', async () => {
  const cost = { usage: { 'usage.cost': 100 }, otherwise: 1, max: 1000 }
  expect(await costOf(['{"usage":{"cost":0.07}}'], JSON_TYPE, cost)).toBe(7)
  expect(await costOf(['{"usage":{"cost":0.071}}'], JSON_TYPE, cost)).toBe(8)
})

test.each([
  ['Two weights', { input: 0.2, output: 1 }, { input: 11, output: 5 }, 8], // 2.2 + 5
  ['Weights that are rounded only once', { input: 0.5, output: 0.5 }, { input: 1, output: 1 }, 1],
  ['A cached part', { input: 1, cached: -0.9 }, { input: 100, cached: 90 }, 19],
  ['A sum of 0 with an error in its last bit', { a: 0.1, b: -0.3 }, { a: 3, b: 1 }, 0],
  ['A sum below 0', { input: 1, cached: -2 }, { input: 5, cached: 5 }, 0],
  ['A sum above max', { input: 1 }, { input: 5000 }, 4000],
  ['Millionths of a dollar', { cost_usd: 1_000_000 }, { cost_usd: 0.0031 }, 3100],
  ['A path without a number', { input: 2, output: 3 }, { output: 5 }, 15],
])('%s of usage.', async (_, weights, usage, units) => {
  const paths = Object.entries(weights).map(([name, weight]) => [`usage.${name}`, weight])
  const cost = { usage: Object.fromEntries(paths), otherwise: 500, max: 4000 }
  expect(await costOf([JSON.stringify({ usage })], JSON_TYPE, cost)).toBe(units)
  expect(await costOf([event({ usage })], SSE, cost)).toBe(units)
})

test('Only a response without any of its numbers costs the reservation.', async () => {
  const cost = { usage: { 'usage.input': 1, 'usage.cached': -1 }, otherwise: 500, max: 4000 }
  expect(await costOf(['{"usage":{"other":1}}'], JSON_TYPE, cost)).toBe(500)
})

const gzipped = gzipSync('{"usage":{"total_tokens":150}}')
test.each([
  ['gzip', gzipped, 150],
  ['deflate', deflateSync('{"usage":{"total_tokens":150}}'), 150],
  ['br', brotliCompressSync('{"usage":{"total_tokens":150}}'), 500],
  ['gzip', Buffer.from('{"usage":{"total_tokens":150}}'), 150], // decoded by the runtime
  ['gzip', gzipped.subarray(0, 12), 500],
  ['gzip', gzipSync(`{"a":"${'x'.repeat(100_000)}","usage":{"total_tokens":150}}`), 500],
])(
  'A response with the encoding %s passes unchanged, and is read if it can be (%#).',
  async (encoding, bytes, units) => {
    const headers = { ...JSON_TYPE, 'content-encoding': encoding }
    const halves = [bytes.subarray(0, 9), bytes.subarray(9)]
    expect(await costOf(halves, headers)).toBe(units)
  },
)

test('The usage of a compressed stream is its cost.', async () => {
  const bytes = gzipSync(chat(777).join(''))
  const headers = { ...SSE, 'content-encoding': 'gzip' }
  expect(await costOf([bytes.subarray(0, 20), bytes.subarray(20)], headers)).toBe(777)
})

test('Other types of content have no usage.', () => {
  expect(streamed(limitWith(TOTAL), { 'content-type': 'text/html' })).toBeUndefined()
  expect(streamed(limitWith(TOTAL), {})).toBeUndefined()
})

test('Each event arrives before the next one is written.', async () => {
  const one = streamed(limitWith(TOTAL), SSE)!
  const reader = one.response.body!.getReader()
  for (const part of chat(150)) {
    one.write(part)
    expect(new TextDecoder().decode((await reader.read()).value)).toBe(part)
  }
  one.close()
  expect((await reader.read()).done).toBe(true)
  expect(await one.kept).toEqual([150])
})

test('A client that hangs up pays for the events that have passed, and the origin stops.', async () => {
  const one = streamed(limitWith({ ...TOTAL, otherwise: 5 }), SSE)!
  const reader = one.response.body!.getReader()
  for (let index = 0; index < 20; index += 1) {
    one.write(event({ index }))
    await reader.read()
  }
  await reader.cancel()
  expect(await one.kept).toEqual([20])
  expect(one.isCancelled()).toBe(true)
})

test('A client that hangs up after the input tokens are known pays for them too.', async () => {
  const cost = { ...TOTAL, usage: ['usage.input_tokens', 'usage.output_tokens'] }
  const one = streamed(limitWith(cost), SSE)!
  const reader = one.response.body!.getReader()
  one.write(event({ message: { usage: { input_tokens: 1000, output_tokens: 1 } } }))
  one.write(event({ delta: {} }))
  await reader.read()
  await reader.read()
  await reader.cancel()
  expect(await one.kept).toEqual([1002])
})

test.each([
  ['a client that hangs up', (reader: ReadableStreamDefaultReader) => reader.cancel()],
  [
    'an origin that breaks off',
    async (reader: ReadableStreamDefaultReader, close: (error: Error) => void) => {
      close(new Error('broken'))
      await expect(reader.read()).rejects.toThrow('broken')
    },
  ],
])(
  'A stream keeps what was reserved although few events have passed before %s.',
  async (_, end) => {
    const one = streamed(limitWith(TOTAL), SSE)!
    const reader = one.response.body!.getReader()
    one.write(event({ usage: { total_tokens: 3 } }))
    await reader.read()
    await end(reader, one.close)
    expect(await one.kept).toEqual([500])
  },
)

test('A client that hangs up before anything could be read pays what was reserved.', async () => {
  const one = streamed(limitWith(TOTAL), SSE)!
  await one.response.body!.cancel()
  expect(await one.kept).toEqual([500])
})

test('A stream that the origin breaks off costs the events that have passed, and fails for the client.', async () => {
  const one = streamed(limitWith({ ...TOTAL, otherwise: 1 }), SSE)!
  const reader = one.response.body!.getReader()
  one.write(event({}))
  await reader.read()
  one.close(new Error('broken'))
  await expect(reader.read()).rejects.toThrow('broken')
  expect(await one.kept).toEqual([1])
})

test('A slow client slows the origin down.', async () => {
  const one = streamed(limitWith({ ...TOTAL, otherwise: 1 }), SSE)!
  for (let index = 0; index < 100; index += 1) one.write(event({ index }))
  const reader = one.response.body!.getReader()
  await reader.read()
  await new Promise(setImmediate)
  expect(one.pulls()).toBe(0) // the parts are not taken
  await reader.cancel()
  expect((await one.kept)[0]).toBeLessThan(5)
})

test('The usage after an event that is too long is the cost, and without usage that event costs one unit.', async () => {
  const long = event({ image: 'é'.repeat(1500) })
  const usage = event({ usage: { total_tokens: 900 } })
  const parts = (text: string, size: number) =>
    Array.from({ length: Math.ceil(text.length / size) }, (_, index) =>
      text.slice(index * size, (index + 1) * size),
    )
  for (const size of [1, 7, 500, 1600]) {
    expect(await costOf(parts(long + usage, size))).toBe(900)
    const counted = { ...TOTAL, otherwise: 1 }
    expect(await costOf(parts(long + long + event({ a: 1 }), size), SSE, counted)).toBe(3)
  }
})

test('The usage after an event that is too long is the cost, wherever its bytes are split.', async () => {
  const bytes = Buffer.from(
    event({ image: '€'.repeat(1500) }) + event({ usage: { total_tokens: 900 } }),
  )
  for (const size of [1, 2, 400, 1021, 1022, 1023]) {
    const count = Math.ceil(bytes.length / size)
    const parts = Array.from({ length: count }, (_, index) =>
      bytes.subarray(index * size, (index + 1) * size),
    )
    expect(await costOf(parts), `parts of ${size} bytes`).toBe(900)
  }
})

test.each([
  ['several members', [gzipSync('{"usage":'), gzipSync('{"total_tokens":150}}')]],
  ['bytes after its end', [gzipped, Buffer.alloc(100_000, 7)]],
  ['a wrong checksum', [gzipped.subarray(0, -8), Buffer.alloc(100_000, 7)]],
])('A response in gzip with %s passes unchanged.', async (_, parts) => {
  const headers = { ...JSON_TYPE, 'content-encoding': 'gzip' }
  expect([150, 500]).toContain(await costOf([...parts, Buffer.alloc(9)], headers))
})
