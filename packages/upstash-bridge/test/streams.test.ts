import { Redis } from '@upstash/redis'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { startBridge } from '../src/index.ts'
import { type BridgeStack, startBridgeStack } from './stack.ts'
import { until } from './until.ts'

let stack: BridgeStack
beforeAll(async () => {
  stack = await startBridgeStack()
})
afterAll(() => stack?.stop())

/** Reads server-sent events until `stop` is called, or to the end of the test. */
async function listen(path: string, base = stack.bridge.url) {
  const abort = new AbortController()
  onTestFinished(() => abort.abort())
  const response = await fetch(base + path, {
    method: 'POST',
    headers: { authorization: 'Bearer dev', accept: 'text/event-stream' },
    body: '[]',
    signal: abort.signal,
  })
  const lines: string[] = []
  let ended = false
  const read = async () => {
    const decoder = new TextDecoder()
    for await (const chunk of response.body!) {
      lines.push(
        ...decoder
          .decode(chunk)
          .split('\n')
          .filter((line) => line !== ''),
      )
    }
  }
  read()
    .catch(() => {})
    .finally(() => {
      ended = true
    })
  return { response, lines, stop: () => abort.abort(), ended: () => ended }
}

const subscribers = async (channel: string) =>
  ((await stack.direct('PUBSUB', 'NUMSUB', channel)) as [string, number])[1]

describe('pub/sub', () => {
  test('Pub/sub messages arrive as server-sent events.', async () => {
    const { response, lines, stop } = await listen('/subscribe/chat')
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    await until(() => expect(lines).toEqual(['data: subscribe,chat,1']))
    await stack.http('/publish/chat/hello', { method: 'POST' })
    await stack.command('publish', 'chat', 'how are you, today?')
    await until(() =>
      expect(lines.slice(1)).toEqual([
        'data: message,chat,hello',
        'data: message,chat,how are you, today?',
      ]),
    )
    stop()
    await until(async () => expect(await subscribers('chat')).toBe(0))
  })

  test('A subscription accepts several channels, patterns and URL-encoded names.', async () => {
    const channels = await listen('/subscribe/one/t%2Fwo')
    const patterns = await listen('/psubscribe/t*')
    await until(() => expect([...channels.lines, ...patterns.lines]).toHaveLength(3))
    await stack.command('publish', 't/wo', '{"a":1}')
    await until(() => {
      expect(channels.lines).toEqual([
        'data: subscribe,one,1',
        'data: subscribe,t/wo,2',
        'data: message,t/wo,{"a":1}',
      ])
      expect(patterns.lines).toEqual(['data: psubscribe,t*,1', 'data: pmessage,t*,t/wo,{"a":1}'])
    })
    channels.stop()
    patterns.stop()
  })

  test('The subscribe method of @upstash/redis works.', async () => {
    const client = new Redis({ url: stack.bridge.url, token: stack.bridge.token })
    const heard: unknown[] = []
    const one = client.subscribe<{ n: number }>('news')
    const all = client.psubscribe('new*')
    one.on('message', ({ channel, message }) => heard.push([channel, message]))
    all.on('pmessage', ({ pattern, channel, message }) => heard.push([pattern, channel, message]))
    try {
      await until(async () => expect(await stack.direct('PUBSUB', 'NUMPAT')).toBe(1))
      await until(async () => expect(await subscribers('news')).toBe(1))
      await client.publish('news', { n: 1 })
      await until(() => expect(heard).toHaveLength(2))
      expect(heard).toEqual(
        expect.arrayContaining([
          ['news', { n: 1 }],
          ['new*', 'news', { n: 1 }],
        ]),
      )
    } finally {
      await one.unsubscribe()
      await all.unsubscribe()
    }
    await until(async () => expect(await subscribers('news')).toBe(0))
  })

  test('A message of several lines becomes several data lines.', async () => {
    const { lines, stop } = await listen('/subscribe/lines')
    await until(() => expect(lines).toHaveLength(1))
    await stack.command('publish', 'lines', 'one\ntwo\r\nevent: three\u2028still three')
    await until(() =>
      expect(lines.slice(1)).toEqual([
        'data: message,lines,one',
        'data: two',
        'data: event: three\u2028still three',
      ]),
    )
    stop()
  })

  test('A HEAD request ends at once and does not subscribe.', async () => {
    expect((await stack.http('/subscribe/head', { method: 'HEAD' })).status).toBe(200)
    await until(async () => expect(await subscribers('head')).toBe(0))
  })

  test('A subscription without a channel is refused.', async () => {
    const { status, json } = await stack.http('/subscribe', { method: 'POST' })
    expect([status, json]).toEqual([400, { error: expect.stringMatching(/wrong number of arg/) }])
  })
})

test('MONITOR streams the commands that Redis runs.', async () => {
  const { lines, stop } = await listen('/monitor')
  // The bridge reads the slots of a cluster every second.
  const commands = () => lines.filter((line) => !line.includes('"CLUSTER" "SLOTS"'))
  await until(() => expect(commands()).toEqual(['data: "OK"']))
  await stack.command('set', 'watched', 'value')
  await until(() =>
    expect(commands().at(-1)).toMatch(/^data: \d+\.\d+ \[0 [^\]]+\] "set" "watched" "value"$/),
  )
  stop()
})

test('The connections of 100 readers are closed when the readers disconnect.', async () => {
  const readers = await Promise.all(Array.from({ length: 100 }, () => listen('/subscribe/crowd')))
  await until(async () => expect(await subscribers('crowd')).toBe(100))
  await stack.command('publish', 'crowd', 'x')
  await until(() => expect(readers.every(({ lines }) => lines.length === 2)).toBe(true))
  for (const { stop } of readers) stop()
  await until(async () => expect(await subscribers('crowd')).toBe(0))
})

test('Closing the bridge ends its streams.', async () => {
  const bridge = await startBridge(stack.target)
  const { lines, ended } = await listen('/subscribe/last', bridge.url)
  await until(() => expect(lines).toHaveLength(1))
  await bridge.close()
  await until(() => expect(ended()).toBe(true))
  await until(async () => expect(await subscribers('last')).toBe(0))
})
