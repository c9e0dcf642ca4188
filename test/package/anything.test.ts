/** The places of the guide "Limit anything", from the packed package: the code of the guide runs as it is written. */
import { once } from 'node:events'
import { readFile, rm } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { type Bridge, freePort, startBridge } from 'sluice-upstash-bridge'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { borrowRedis } from '../support/borrow-redis.ts'
import { installConsumer, runIn, startIn } from './support/consumer.ts'
import { placeOf } from './support/guide.ts'
import { listening } from './support/listening.ts'

/** The mails and reports that the Worker has sent. */
const sent: { to: string; subject: string }[] = []
const sender = createServer(async (request: IncomingMessage, response: ServerResponse) => {
  let body = ''
  for await (const part of request) body += part
  sent.push(JSON.parse(body))
  response.end()
})

/** What the code of the guide takes for granted. */
const mail = `export interface Mail { to: string; subject: string }
export const send = (mail: Mail, env: Env) =>
  fetch(env.SENDER, { method: 'POST', body: JSON.stringify(mail) })
export const accountsOf = async (_: Env) => ['ann', 'ben']
export const report = (to: string, env: Env) => send({ to, subject: 'Report' }, env)
`

/** One Worker for all places, which also puts mails in its queue. */
const worker = `import cron from './cron'
import type { Mail } from './mail'
import queue from './queue'
import socket from './socket-worker'

export default {
  async fetch(request, env, ctx) {
    if (request.method !== 'POST') return socket.fetch(request, env, ctx)
    const mails: Mail[] = await request.json()
    await env.MAILS.sendBatch(mails.map((body) => ({ body })))
    return new Response()
  },
  queue: queue.queue,
  scheduled: cron.scheduled,
} satisfies ExportedHandler<Env, Mail>
`

const wrangler = {
  name: 'app',
  main: 'src/index.ts',
  compatibility_date: '2026-01-01',
  triggers: { crons: ['0 0 1 1 *'] },
  queues: {
    producers: [{ binding: 'MAILS', queue: 'mails' }],
    consumers: [{ queue: 'mails', max_batch_timeout: 0 }],
  },
}

const compilerOptions = {
  ...{ target: 'es2024', module: 'preserve', strict: true, skipLibCheck: true, noEmit: true },
}
const onNode = ['trpc', 'mcp-tool', 'ai-tool', 'socket-node'].map((name) => `${name}.ts`)
const inWorker = ['queue', 'cron', 'socket-worker'].map((name) => `src/${name}.ts`)

const redis = borrowRedis()
let bridge: Bridge
let folder: string
let url: string
/** What six calls got on Node. */
// biome-ignore lint/suspicious/noExplicitAny: each test knows its part
let seen: any
let stop: () => Promise<void>

const bin = (name: string) => join(folder, 'node_modules/.bin', name)

beforeAll(async () => {
  bridge = await startBridge({ redis: (await redis).url, token: 'a-local-token' })
  await once(sender.listen(0, '127.0.0.1'), 'listening')
  const variables = {
    UPSTASH_REDIS_REST_URL: bridge.url,
    UPSTASH_REDIS_REST_TOKEN: bridge.token,
    SENDER: `http://127.0.0.1:${(sender.address() as AddressInfo).port}`,
  }
  folder = await installConsumer({
    packages: [
      ...['@modelcontextprotocol/sdk@1.32.2', '@trpc/server@11.25.2', 'ai@7.0.173', 'zod@4.6.7'],
      ...['ws@8.23.0', '@types/ws@8.18.2', 'wrangler@4.156.0', 'typescript@7.0.2'],
      '@types/node@24.19.2',
    ],
    files: {
      'package.json': '{ "type": "module" }',
      'wrangler.json': JSON.stringify(wrangler),
      '.dev.vars': Object.entries(variables)
        .map(([name, value]) => `${name}=${value}\n`)
        .join(''),
      'src/index.ts': worker,
      'src/mail.ts': mail,
      ...Object.fromEntries([...onNode, ...inWorker].map((path) => [path, placeOf(path)])),
      'places.mjs': await readFile(new URL('support/places.mjs', import.meta.url), 'utf8'),
      'node.json': JSON.stringify({
        compilerOptions: { ...compilerOptions, types: ['node'] },
        files: onNode,
      }),
      'worker.json': JSON.stringify({
        compilerOptions: { ...compilerOptions, lib: ['es2024'], types: [] },
        include: ['src', 'worker-configuration.d.ts'],
      }),
    },
  })
  const port = await freePort()
  url = `http://127.0.0.1:${port}`
  const args = ['dev', '--ip', '127.0.0.1', '--port', `${port}`, '--test-scheduled']
  const dev = startIn(folder, bin('wrangler'), args)
  stop = dev.stop
  const printed = await runIn(folder, process.execPath, ['places.mjs'], { PORT: '0', ...variables })
  seen = JSON.parse(printed.trim().split('\n').at(-1)!)
  await listening(port, dev)
}, 300_000)
afterAll(async () => {
  await stop?.()
  await bridge?.close()
  await (await redis).stop()
  sender.close()
  if (folder) await rm(folder, { recursive: true, force: true })
})

const sentTo = (subject: string) =>
  sent.filter((mail) => mail.subject === subject).map(({ to }) => to)

test('The code of all places compiles with the types of the libraries.', async () => {
  await runIn(folder, bin('wrangler'), ['types'])
  for (const project of ['node.json', 'worker.json']) {
    expect(await runIn(folder, bin('tsc'), ['-p', project])).toBe('')
  }
})

test('The sixth call of a tRPC procedure gets the status 429.', () => {
  expect(seen.trpc).toEqual([200, 200, 200, 200, 200, 429])
})

test('The sixth call of an MCP tool is an error, which tells the model when to call again.', () => {
  expect(seen.mcp.map(({ isError }: { isError: boolean }) => isError)).toEqual([
    ...Array(5).fill(false),
    true,
  ])
  expect(seen.mcp[5].text).toMatch(/^The limit of searches is reached. Call again in \d+ seconds.$/)
})

test('Of six tool calls that a model of the AI SDK makes at once, one is refused.', () => {
  const refused = seen.ai.outputs.filter(({ error }: { error?: string }) => error)
  expect([seen.ai.outputs.length, refused.length, seen.ai.text]).toEqual([6, 1, 'It is warm.'])
})

test('The sixth message of a WebSocket on Node is refused.', () => {
  expect(seen.socket).toEqual([
    ...[1, 2, 3, 4, 5].map((n) => `You said ${n}`),
    'Too many messages.',
  ])
})

test('The sixth message of a WebSocket in workerd is refused, long after the response.', async () => {
  const socket = new WebSocket(url.replace('http', 'ws'))
  await once(socket, 'open')
  const answers: string[] = []
  for (let count = 1; count <= 6; count++) {
    socket.send(`${count}`)
    answers.push((await once(socket, 'message'))[0].data)
  }
  socket.close()
  expect(answers).toEqual([...[1, 2, 3, 4, 5].map((n) => `You said ${n}`), 'Too many messages.'])
})

test('A consumer of a queue sends five mails to an address, and gives the others back.', async () => {
  const mails = [...Array(7).fill('ann'), 'ben'].map((to) => ({ to, subject: 'Welcome' }))
  await fetch(url, { method: 'POST', body: JSON.stringify(mails) })
  await expect.poll(() => sentTo('Welcome')).toContain('ben') // the last one
  expect(sentTo('Welcome')).toEqual([...Array(5).fill('ann'), 'ben'])
})

test('A cron trigger that runs twice sends one report to each account.', async () => {
  for (const _ of [1, 2]) {
    expect((await fetch(`${url}/__scheduled?cron=0+0+1+1+*`)).status).toBe(200)
  }
  expect(sentTo('Report')).toEqual(['ann', 'ben'])
})
