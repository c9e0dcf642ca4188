/** The examples for nginx and Caddy, while Sluice or its store is unavailable. */
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { freePort } from 'sluice-upstash-bridge'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type Answer, ask } from '../../dev/proxies/client.ts'
import type { Settings } from '../../dev/proxies/example.ts'
import { type RunningProxy, runProxy } from '../../dev/proxies/run.ts'
import { type Stack, startStack } from '../../dev/stack.ts'
import {
  binaries,
  config,
  createUndoStack,
  echoOf,
  env,
  names,
  runProxyOf,
  token,
} from '../support/forward-auth.ts'
import { startScriptedOrigin } from '../support/scripted-origin.ts'

let stack: Stack
beforeAll(async () => {
  stack = await startStack({ config, env })
})
afterAll(() => stack?.stop())

const { undo, undoAll } = createUndoStack()
afterEach(undoAll)

describe.each(names)('%s', (name) => {
  const binary = binaries[name]
  const run = (settings: Partial<Settings> = {}) => runProxyOf(stack, name, settings)
  /** Runs a proxy with these settings until the end of the test. */
  const runForTest = async (settings: Partial<Settings>) => {
    const running = await run(settings)
    undo.push(running.stop)
    return running
  }

  describe.skipIf(!binary).each(['pass', 'refuse'] as const)(
    'without an answer of Sluice (undecided: %s)',
    (undecided) => {
      const outcome = undecided === 'pass' ? 'pass' : 'are refused'
      const expectAsConfigured = (answer: Answer, before: number) => {
        expect(answer.headers).not.toHaveProperty('ratelimit')
        if (undecided === 'refuse') {
          expect(answer.status).toBe(503)
          expect(stack.origin.requests()).toBe(before)
          return
        }
        expect(answer.status).toBe(200)
        expect(echoOf(answer)).toMatchObject({
          method: 'POST',
          url: '/page/away?a=1',
          body: { text: 'still here' },
        })
        expect(echoOf(answer).headers).not.toHaveProperty('sluice-token')
        expect(stack.origin.requests()).toBe(before + 1)
      }
      const post = (url: string) =>
        ask(`${url}/page/away?a=1`, {
          method: 'POST',
          headers: { 'Sluice-Token': 'a-guess' },
          body: 'still here',
        })

      test(`With ${name} requests ${outcome} if no server listens.`, async () => {
        const { url } = await runForTest({ api: `http://127.0.0.1:${await freePort()}`, undecided })
        const before = stack.origin.requests()
        expectAsConfigured(await post(url), before)
      })

      test(`With ${name} requests ${outcome} after a second if the server never answers.`, async () => {
        const silent = createServer(() => {}).listen(0, '127.0.0.1')
        await once(silent, 'listening')
        const { port } = silent.address() as AddressInfo
        const { url } = await runForTest({
          api: `http://127.0.0.1:${port}`,
          undecided,
          patience: '1s',
        })
        undo.push(async () => void silent.close())
        const before = stack.origin.requests()
        const start = performance.now()
        const answer = await post(url)
        const took = performance.now() - start
        expectAsConfigured(answer, before)
        expect(took).toBeGreaterThan(900)
        expect(took).toBeLessThan(4000)
      })

      test.each([429, 500, 502, 503, 522])(
        `With ${name} requests ${outcome} if the server answers %d, as Cloudflare does for a fault.`,
        async (status) => {
          const failing = await startScriptedOrigin((_, response) =>
            response.writeHead(status, { 'content-type': 'text/html' }).end('<h1>Error</h1>'),
          )
          undo.push(failing.close)
          const { url } = await runForTest({ api: failing.url, undecided })
          const before = stack.origin.requests()
          expectAsConfigured(await post(url), before)
        },
      )

      test(`With ${name} requests ${outcome} if the server closes the connection.`, async () => {
        const failing = await startScriptedOrigin((_, response) => response.socket!.destroy())
        undo.push(failing.close)
        const { url } = await runForTest({ api: failing.url, undecided })
        const before = stack.origin.requests()
        expectAsConfigured(await post(url), before)
      })
    },
  )
})

test.skipIf(!binaries.nginx || !binaries.caddy)(
  'Each proxy acts as configured after the Worker has stopped.',
  async () => {
    const worker = await startStack({ config, env })
    const proxies: [RunningProxy, Settings['undecided']][] = []
    for (const name of names) {
      for (const undecided of ['pass', 'refuse'] as const) {
        const settings = {
          api: worker.url,
          token,
          app: stack.origin.url,
          undecided,
          patience: '10s',
        }
        proxies.push([await runProxy(name, binaries[name]!, settings), undecided])
      }
    }
    undo.push(worker.stop, ...proxies.map(([{ stop }]) => stop))
    const status = ([{ url }]: (typeof proxies)[number], path: string) =>
      ask(url + path).then((answer) => answer.status)

    for (const proxy of proxies) expect(await status(proxy, '/free')).toBe(200)
    for (const proxy of proxies) expect(await status(proxy, '/forbidden')).toBe(403)
    await worker.worker.stop()
    undo.shift()
    undo.unshift(
      () => Promise.all([worker.bridge.close(), worker.origin.close()]),
      worker.redis.stop,
    )
    for (const proxy of proxies) {
      expect(await status(proxy, '/forbidden')).toBe(proxy[1] === 'pass' ? 200 : 503)
    }
  },
)

describe('without the store', () => {
  let stackWithoutStore: Stack
  beforeAll(async () => {
    stackWithoutStore = await startStack({
      config,
      env: { ...env, UPSTASH_REDIS_REST_URL: 'http://127.0.0.1:1' },
    })
  })
  afterAll(() => stackWithoutStore?.stop())

  test.each(names)(
    'Without the store a request through %s gets a 503 with onStoreError deny, and passes with allow.',
    async (name) => {
      const binary = binaries[name]
      if (!binary) return
      const proxy = await runProxy(name, binary, {
        api: stackWithoutStore.url,
        token,
        app: stack.origin.url,
        undecided: 'pass',
        patience: '10s',
      })
      undo.push(proxy.stop)
      const before = stack.origin.requests()
      const denied = await ask(`${proxy.url}/strict`)
      expect(denied.status).toBe(503)
      expect(denied.headers['content-type']).toMatch(/^application\/problem\+json/)
      expect(stack.origin.requests()).toBe(before)
      const allowed = await ask(`${proxy.url}/page/x`)
      expect(allowed.status).toBe(200)
      expect(allowed.headers).not.toHaveProperty('ratelimit')
    },
  )
})
