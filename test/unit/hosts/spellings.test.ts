/** Whatever spelling of a path a router takes for a route, Sluice counts or denies it. Other servers: `test/worker/origins.long.test.ts`. */
import { createServer } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import { expect, onTestFinished, test } from 'vitest'
import { isLong } from '../../support/long.ts'
import { listen } from '../../support/node-servers.ts'
import {
  asParsed,
  asSent,
  client,
  compare,
  onWorkers,
  routeOf,
  spellings,
} from '../../support/spellings.ts'

const targets = spellings(isLong ? 20_000 : 2_000)

const honoApp = new Hono()
  .get('/login', (c) => c.text('login'))
  .get('/users/:id', (c) => c.text(`users\n${c.req.param('id')}`))
  .get('/admin/*', (c) => c.text('admin'))
  .get('/health', (c) => c.text('health'))
  .get('/free', (c) => c.text('free'))

const servers = {
  http: () =>
    createServer(({ url }, response) => {
      const [path] = url!.split('?')
      const [, first, second, ...more] = path!.split('/')
      const isPlain = second === undefined && ['login', 'health', 'free'].includes(first!)
      if (first === 'users' && second && more.length === 0) response.end(`users\n${second}`)
      else response.end(isPlain || first === 'admin' ? first : '')
    }),
  // As in Ruby, where `^` and `$` match at line feeds. An id that names someone has neither line feeds nor only dots.
  'http, by lines': () =>
    createServer(({ url }, response) => {
      const [path] = url!.split('?')
      const text = path!.replace(/(?:%[\da-f]{2})+/gi, (run) => {
        try {
          return decodeURIComponent(run)
        } catch {
          return run
        }
      })
      const [, plain] = /^\/(login|health|free)$/m.exec(text) ?? []
      const [, id] = /^\/users\/(\w+)$/m.exec(text) ?? []
      const isAdmin = /^\/admin(\/.*)?$/m.test(text)
      response.end(id === undefined ? (plain ?? (isAdmin ? 'admin' : '')) : `users\n${id}`)
    }),
  express: () => {
    const app = express()
    app.get('/users/:id', (request, response) => void response.send(`users\n${request.params.id}`))
    for (const name of ['login', 'health', 'free']) {
      app.get(`/${name}`, (_, response) => void response.send(name))
    }
    app.use('/admin', (_, response) => void response.send('admin'))
    return createServer(app)
  },
  fastify: async () => {
    const app = fastify({
      routerOptions: { ignoreTrailingSlash: true, ignoreDuplicateSlashes: true },
    })
    app.get('/users/:id', ({ params }) => `users\n${(params as { id: string }).id}`)
    for (const name of ['login', 'health', 'free']) app.get(`/${name}`, () => name)
    app.get('/admin/*', () => 'admin')
    await app.ready()
    return app.server
  },
  'hono on Node': () =>
    createServer(getRequestListener(honoApp.fetch, { overrideGlobalObjects: false })),
}

test.each(Object.entries(servers))(
  'No spelling goes around a policy or a list to %s, which gets the target as it was sent or as it was parsed.',
  async (_, start) => {
    const { ask, close } = client(await listen(await start()))
    onTestFinished(close)
    for (const way of [asSent, asParsed]) {
      const { routed, wrong } = await compare(targets, way, ask)
      expect(wrong).toEqual([])
      for (const name of ['login', 'users', 'admin', 'health', 'free']) {
        expect(routed[name], name).toBeGreaterThan(1)
      }
    }
  },
)

test('No spelling goes around a policy or a list to Hono on Workers, which routes the URL as it was sent.', async () => {
  const ask = async (url: string) => {
    const request = { url, method: 'GET', headers: new Headers() } as Request
    return routeOf(await (await honoApp.fetch(request)).text())
  }
  const { routed, wrong } = await compare(targets, onWorkers, ask)
  expect(wrong).toEqual([])
  expect(routed.admin).toBeGreaterThan(targets.length / 100)
})
