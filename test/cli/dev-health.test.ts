import { createServer, type RequestListener } from 'node:http'
import { expect, test } from 'vitest'
import { answersHealth } from '../../cli/dev/health.ts'
import { endpoints } from '../../src/features/endpoints/index.ts'
import { createSluice } from '../../src/hosts/app/sluice.ts'
import { createGateway } from '../../src/hosts/worker/gateway.ts'
import { listen } from '../support/node-servers.ts'

const start = (listener: RequestListener) => listen(createServer(listener))
const policies = [{ name: 'all', limit: 3, window: '1h', key: 'global' }] as const

/** Starts a server that answers as a handler of `Request` does. */
const serve = (answer: (request: Request) => Promise<Response> | Response) =>
  start(async ({ url }, response) => {
    const { status, headers, body } = await answer(new Request(`http://localhost${url}`))
    response.writeHead(status, Object.fromEntries(headers))
    response.end(body && (await new Response(body).text()))
  })

const withApp = (use: Parameters<typeof createSluice>[0]['use']) => {
  const sluice = createSluice({
    policies: [...policies],
    unconfigured: 'local',
    ...(use && { use }),
  })
  return serve(async (request) => {
    const { response } = await sluice.check(request, { env: {} })
    return response ?? Response.json({ hello: 'world' })
  })
}

test('A gateway answers health, with and without a database.', async () => {
  const gateway = createGateway({ policies: [...policies] })
  const database = {
    UPSTASH_REDIS_REST_URL: 'https://redis.example.com',
    UPSTASH_REDIS_REST_TOKEN: 'a',
  }
  for (const env of [{}, database]) {
    expect(await answersHealth(await serve((request) => gateway.fetch(request, env)))).toBe(true)
  }
})

test('The question has an address that no client has, so that an app takes nothing from the quota of this machine.', async () => {
  const seen: unknown[] = []
  const url = await start(({ headers }, response) => {
    seen.push(headers['cf-connecting-ip'])
    response.end()
  })
  await answersHealth(url)
  expect(seen).toEqual(['192.0.2.0'])
})

test('An app answers health with endpoints(), and not without.', async () => {
  expect(await answersHealth(await withApp([endpoints()]))).toBe(true)
  expect(await answersHealth(await withApp(undefined))).toBe(false)
})

test.each<[string, RequestListener]>([
  ['answers with a page', (_, response) => void response.end('<h1>Not found</h1>')],
  ['answers with null', (_, response) => void response.end('null')],
  ['answers another status', (_, response) => void response.end('{"status":"up"}')],
  ['ends the connection', ({ socket }) => void socket.destroy()],
  ['never answers', () => {}],
])('A server that %s has no endpoints.', async (_, listener) => {
  expect(await answersHealth(await start(listener), 200)).toBe(false)
})
