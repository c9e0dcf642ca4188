/** Runs in a new project with the packed package: tries small features as their users would, and prints what they have seen as JSON. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { ThrottlerGuard } from '@nestjs/throttler'
import { betterAuth } from 'better-auth'
import { memoryAdapter } from 'better-auth/adapters/memory'
import express from 'express'
import { rateLimit } from 'express-rate-limit'
import { createGateway } from 'sluice'
import { sluiceStorage } from 'sluice/better-auth'
import { createClient } from 'sluice/client'
import { SluiceStore } from 'sluice/express-rate-limit'
import { bodies, jitter, quota } from 'sluice/features'
import { SluiceThrottlerStorage } from 'sluice/nest'
import { rateLimiter } from 'sluice/node'

const OPERATE = 'an-operate-token-for-tests'
const { UPSTASH_REDIS_REST_URL, UPSTASH_REDIS_REST_TOKEN } = process.env
const database = { UPSTASH_REDIS_REST_URL, UPSTASH_REDIS_REST_TOKEN }
const env = { ...database, SLUICE_SECRET: 'a secret', SLUICE_OPERATE_TOKEN: OPERATE }

async function listen(handler) {
  const server = createServer(handler).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return `http://127.0.0.1:${server.address().port}`
}

/** A real origin: a model that answers at once or as a stream, an MCP server, and a download in chunks. */
const origin = await listen(async (request, response) => {
  let text = ''
  for await (const part of request) text += part
  const { stream, id, method, params } = JSON.parse(text || '{}')
  const json = (body) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  if (request.url === '/file') {
    response.writeHead(200, { 'content-type': 'application/octet-stream' })
    for (let part = 0; part < 5; part++) response.write(Buffer.alloc(1000))
    return response.end()
  }
  if (request.url === '/chat' && stream) {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const word of ['one', 'two']) response.write(`data: ${JSON.stringify({ word })}\n\n`)
    response.write('data: {"usage":{"total_tokens":900}}\n\n')
    return response.end('data: [DONE]\n\n')
  }
  if (request.url === '/chat') {
    return json({ usage: { prompt_tokens: 1000, completion_tokens: 100 } })
  }
  const results = {
    initialize: {
      protocolVersion: params?.protocolVersion,
      capabilities: { tools: {} },
      serverInfo: { name: 'tools', version: '1.0.0' },
    },
    'tools/call': { content: [{ type: 'text', text: 'found' }] },
  }
  if (results[method]) return json({ jsonrpc: '2.0', id, result: results[method] })
  response.writeHead(request.method === 'POST' ? 202 : 405).end()
})

let namespaces = 0
/** A gateway of its own, and a function that sends it a request. */
function gateway(policies, use = []) {
  const app = createGateway({
    origin,
    clientAddress: 'cloudflare',
    namespace: `items-${++namespaces}`,
    deadline: '10s',
    policies: policies.map((policy) => ({ algorithm: 'fixed-window', window: '1h', ...policy })),
    use,
  })
  const background = []
  const context = {
    waitUntil: (promise) => background.push(promise),
    passThroughOnException() {},
    props: {},
  }
  return async (path, init = {}) => {
    const headers = {
      'cf-connecting-ip': '203.0.113.7',
      ...Object.fromEntries(new Headers(init.headers)),
    }
    const url = new URL(path, 'https://www.example.com')
    const response = await app.fetch(new Request(url, { ...init, headers }), env, context)
    if (!init.isStream) return response
    const text = await response.text()
    await Promise.all(background)
    return { status: response.status, text }
  }
}

const post = (body, more = {}) => ({
  method: 'POST',
  body: JSON.stringify(body),
  ...more,
  headers: { 'content-type': 'application/json', ...more.headers },
})
const left = (response) => Number(/;r=(\d+)/.exec(response.headers.get('ratelimit'))[1])

const items = {
  async weights() {
    const usage = { 'usage.prompt_tokens': 0.2, 'usage.completion_tokens': 1 }
    const send = gateway(
      [{ name: 'tokens', limit: 10_000, cost: { usage, max: 4000 } }],
      [bodies()],
    )
    await send('/chat', post({}, { isStream: true }))
    return left(await send('/chat', post({}))) // 300 are used, and 4000 reserved
  },

  async streams() {
    const cost = { usage: 'usage.total_tokens', body: 'max_tokens', max: 4000 }
    const send = gateway([{ name: 'tokens', limit: 10_000, cost }], [bodies()])
    const ask = () => send('/chat', post({ stream: true, max_tokens: 900 }, { isStream: true }))
    const answers = await Promise.all(Array.from({ length: 20 }, ask))
    return {
      whole: answers.filter(({ text }) => text.endsWith('[DONE]\n\n')).length,
      refused: answers.filter(({ status }) => status === 429).length,
    }
  },

  async loops() {
    const send = gateway(
      [
        {
          name: 'same-call',
          limit: 3,
          window: '2m',
          algorithm: 'sliding-log',
          match: { body: { method: 'tools/call' } },
          key: ['ip', 'body:params.name', { digest: 'body:params.arguments' }],
          cost: { max: 3 },
        },
      ],
      [bodies()],
    )
    const call = async (args) => {
      const params = { name: 'search', arguments: args }
      return (await send('/mcp', post({ id: 1, method: 'tools/call', params }))).status
    }
    const statuses = []
    for (const args of [{ a: 1, b: 2 }, { b: 2, a: 1 }, { a: 1, b: 2 }, { b: 2, a: 1 }, { a: 2 }]) {
      statuses.push(await call(args))
    }
    return statuses
  },

  async refusals() {
    const match = { body: { method: 'tools/call' } }
    const refusal = { body: 'json-rpc', status: 200 }
    const send = gateway(
      [{ name: 'calls', limit: 1, match, cost: { max: 1 }, refusal }],
      [bodies()],
    )
    const client = new Client({ name: 'agent', version: '1.0.0' })
    const url = new URL('https://www.example.com/mcp')
    await client.connect(
      new StreamableHTTPClientTransport(url, { fetch: (to, init) => send(to, init) }),
    )
    const call = () => client.callTool({ name: 'search', arguments: {} })
    const { content } = await call()
    const { code, data } = await call().catch((error) => error)
    await client.close()
    return { content, code, violated: data['violated-policies'] }
  },

  async quota() {
    const send = gateway([{ name: 'per-ip', limit: 10 }], [quota()])
    await send('/chat')
    const read = async () => (await (await send('/_sluice/quota')).json()).quotas[0]
    await read()
    const { policy, remaining } = await read()
    return { policy, remaining }
  },

  async distinct() {
    const policy = { name: 'names', limit: 2, distinct: 'body:username', algorithm: undefined }
    const send = gateway([policy], [bodies()])
    const statuses = []
    for (const username of ['ann', 'bob', 'ann', 'cat', 'bob']) {
      statuses.push((await send('/chat', post({ username }))).status)
    }
    return statuses
  },

  async bytes() {
    const policy = { name: 'bytes', limit: 20_000, cost: { response: 'bytes' } }
    const send = gateway([policy], [bodies(), quota()])
    await send('/file', { isStream: true })
    const { quotas } = await (await send('/_sluice/quota')).json()
    return { remaining: quotas[0].remaining, unit: quotas[0].unit }
  },

  async proxies() {
    const app = express()
    app.use(
      rateLimiter({
        clientAddress: { forwardedFor: { trustedProxies: ['cloudflare', '127.0.0.0/8'] } },
        deadline: '10s',
        namespace: 'items-proxies',
        policies: [{ name: 'one', limit: 1, window: '1h' }],
      }),
    )
    app.get('/', (_, response) => response.send('ok'))
    const url = await listen(app)
    const status = async (client, proxy) =>
      (await fetch(url, { headers: { 'x-forwarded-for': `${client}, ${proxy}` } })).status
    // The first two are clients behind Cloudflare. The last two come from one address that is no proxy.
    return [
      await status('203.0.113.1', '173.245.48.5'),
      await status('203.0.113.2', '173.245.48.5'),
      await status('203.0.113.3', '192.0.2.9'),
      await status('203.0.113.4', '192.0.2.9'),
    ]
  },

  async bans() {
    const penalty = { after: 1, within: '1m', ban: '1h', list: true }
    const send = gateway([{ name: 'login', limit: 1, penalty }])
    const client = createClient({ url: 'https://www.example.com', token: OPERATE, fetch: send })
    await send('/chat')
    const refused = (await send('/chat', { isStream: true })).status
    const { bans, total } = await client.bans('login')
    const body = { subject: bans[0].subject }
    const headers = { authorization: `Bearer ${OPERATE}` }
    await send('/_sluice/v1/policies/login/unban', post(body, { headers }))
    return {
      refused,
      total,
      bannedForMs: bans[0].bannedForMs,
      after: (await client.bans('login')).total,
    }
  },

  async jitter() {
    const send = gateway([{ name: 'one', limit: 1 }], [jitter('100%')])
    await send('/chat')
    const waits = []
    for (let n = 0; n < 10; n++) waits.push((await (await send('/chat')).json()).retryAfterMs)
    return waits
  },

  async adapters() {
    const options = { env: database, deadline: '10s', namespace: 'items-adapters' }
    const { handler } = betterAuth({
      baseURL: 'http://localhost:3000',
      secret: 'a-secret-of-at-least-32-characters-for-tests',
      database: memoryAdapter({ user: [], session: [], account: [], verification: [] }),
      emailAndPassword: { enabled: true },
      rateLimit: { enabled: true, customStorage: sluiceStorage(options) },
      telemetry: { enabled: false },
      logger: { disabled: true },
    })
    const signIn = async () => {
      const url = 'http://localhost:3000/api/auth/sign-in/email'
      const body = { email: 'a@example.com', password: 'not-the-password' }
      const headers = { 'x-forwarded-for': '203.0.113.7' }
      return (await handler(new Request(url, post(body, { headers })))).status
    }
    const auth = []
    for (let n = 0; n < 4; n++) auth.push(await signIn())

    const app = express()
    app.use(rateLimit({ windowMs: 60_000, limit: 1, store: new SluiceStore(options) }))
    app.get('/', (_, response) => response.send('ok'))
    const url = await listen(app)
    const ofExpress = [(await fetch(url)).status, (await fetch(url)).status]

    const storage = new SluiceThrottlerStorage(options)
    const guard = new ThrottlerGuard({ throttlers: [{ ttl: 60_000, limit: 1 }] }, storage, {
      getAllAndOverride() {},
    })
    await guard.onModuleInit()
    const context = {
      getHandler: () => listen,
      getClass: () => Client,
      switchToHttp: () => ({
        getRequest: () => ({ ip: '203.0.113.7', headers: {} }),
        getResponse: () => ({ header() {} }),
      }),
    }
    const nest = []
    for (let n = 0; n < 2; n++) {
      nest.push(await guard.canActivate(context).catch((error) => error.getStatus()))
    }
    return { auth, express: ofExpress, nest }
  },
}

const seen = {}
for (const [name, run] of Object.entries(items)) {
  seen[name] = await run().catch((error) => ({ failed: String(error.stack) }))
}
console.log(JSON.stringify(seen))
process.exit()
