/** Deployments that limit nobody, or not as they should, each in a real workerd or a real framework. `sluice verify` finds each one. */
import { createServer } from 'node:http'
import express from 'express'
import fastify from 'fastify'
import { startBridge } from 'sluice-upstash-bridge'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { toText } from '../../../cli/verify/print.ts'
import { type VerifyOptions, verifyDeployment } from '../../../cli/verify/run.ts'
import { parseConfig } from '../../../src/core/config/parse.ts'
import { defaultFields } from '../../../src/features/defaults.ts'
import { verify } from '../../../src/features/verify/index.ts'
import { fastifyRateLimiter, rateLimiter } from '../../../src/hosts/node/node.ts'
import type { JsonConfig } from '../../../tools/any-config.ts'
import { useDatabase } from '../../support/database.ts'
import { startFront } from '../../support/front.ts'
import { configOf, listen, type Options } from '../../support/node-servers.ts'
import { startStack } from '../../support/stack.ts'

const TOKEN = 'a-token-to-verify-with'
const policies: NonNullable<JsonConfig['policies']> = [
  { name: 'all', limit: 8, window: '1h' },
  {
    name: 'login',
    algorithm: 'fixed-window',
    limit: 4,
    window: '1h',
    match: { path: '/login', method: 'POST' },
  },
]
const config: JsonConfig = { deadline: '10s', policies }

/** A healthy Worker. */
let stack: Awaited<ReturnType<typeof startStack>>
const database = useDatabase()
beforeAll(async () => {
  stack = await startStack({ config, env: { SLUICE_VERIFY_TOKEN: TOKEN } })
  Object.assign(process.env, database.env, { SLUICE_VERIFY_TOKEN: TOKEN })
})
afterAll(() => stack?.stop())

/** A Worker with other settings. */
async function start(own: JsonConfig, env: Record<string, string> = {}) {
  const other = await startStack({ config: own, env: { SLUICE_VERIFY_TOKEN: TOKEN, ...env } })
  onTestFinished(() => other.stop())
  return other
}

/** The problems of a deployment. */
async function problemsOf(url: string, more: Partial<VerifyOptions> = {}, own: object = config) {
  const parsed = parseConfig(own, defaultFields)
  const findings = await verifyDeployment({
    ...{ url, token: TOKEN, config: parsed, maxWaitMs: 1, ...more },
  })
  return findings
    .filter(({ status }) => status === 'problem')
    .map(({ name, text }) => `${name}: ${text}`)
}

const found = (text: string) => expect.arrayContaining([expect.stringContaining(text)])

test('A healthy Worker has no problem.', async () => {
  expect(await problemsOf(stack.url)).toEqual([])
})

test('A missing secret is found.', async () => {
  const { url } = await start(config, { UPSTASH_REDIS_REST_TOKEN: '' })
  expect(await problemsOf(url)).toEqual(
    found('verify: the deployment answers 500: UPSTASH_REDIS_REST_TOKEN: expected the REST token'),
  )
})

test('Another token is found.', async () => {
  const problems = await problemsOf(stack.url, { token: 'another-token-of-24-letters' })
  expect(problems).toEqual(found('verify: the token is not one of SLUICE_VERIFY_TOKEN'))
})

test('A deployment without a token is found, and no request reaches its origin.', async () => {
  const { url, origin } = await start(config, { SLUICE_VERIFY_TOKEN: '' })
  expect(await problemsOf(url)).toEqual(found('but without the variable SLUICE_VERIFY_TOKEN'))
  expect(origin.requests()).toBe(0)
})

test('A wrong database is found.', async () => {
  const env = { UPSTASH_REDIS_REST_URL: 'https://eu1-production.upstash.io' }
  expect(await problemsOf(stack.url, { env })).toEqual(
    found('store: the database is not the one in UPSTASH_REDIS_REST_URL'),
  )
})

test('A database that does not answer is found.', async () => {
  const { url } = await start({ policies }, { UPSTASH_REDIS_REST_URL: 'http://127.0.0.1:1' })
  const problems = await problemsOf(url, {}, { policies })
  expect(problems).toEqual(found('store: the database does not answer (unreachable)'))
  expect(problems).toEqual(found('all: the database did not decide'))
})

test('A route that does not cover a path is found.', async () => {
  const url = await startFront({
    to: (path) => (path.startsWith('/login') ? stack.origin.url : stack.url),
  })
  const problems = await problemsOf(url, { routes: ['example.com/api/*'] })
  expect(problems).toEqual([
    'login: not limited: POST /login answers 200 without Sluice. The routes of the Worker are example.com/api/*',
  ])
})

test('Another spelling of a path that goes around the limiter is found.', async () => {
  const url = await startFront({
    to: (path) => (path.includes(';x=1') ? stack.origin.url : stack.url),
  })
  expect(await problemsOf(url)).toEqual(found('login: /login;x=1 is answered without Sluice'))
})

test('An old configuration is found.', async () => {
  const newer = { ...config, policies: [{ ...policies[0]!, limit: 6 }, policies[1]!] }
  const problems = await problemsOf(stack.url, {}, newer)
  expect(problems).toEqual(
    found('configuration: not that of this folder (deployed with other terms: all)'),
  )
  expect(problems).toEqual(found('all: the deployment admits 8, and this folder 6'))
})

test('A policy that is not deployed is found.', async () => {
  const newer = { ...config, policies: [...policies, { ...policies[0]!, name: 'new' }] }
  expect(await problemsOf(stack.url, {}, newer)).toEqual(found('new: not deployed'))
})

test('A count in each isolate instead of the database is found.', async () => {
  const own: JsonConfig = { ...config, unconfigured: 'local' }
  const env = { UPSTASH_REDIS_REST_URL: '', UPSTASH_REDIS_REST_TOKEN: '' }
  const { url } = await start(own, env)
  expect(await problemsOf(url, {}, own)).toEqual(found('all: the database did not decide'))
})

test('Two instances with different databases are found.', async () => {
  const other = await start(config, database.env)
  let turn = 0
  const url = await startFront({ to: () => (turn++ % 2 === 0 ? stack.url : other.url) })
  const problems = await problemsOf(url)
  expect(problems).toEqual(found('store: several databases answer for one'))
})

test('A cache in front is found.', async () => {
  const url = await startFront({ to: () => stack.url, caches: true })
  expect(await problemsOf(url)).toEqual(found('all: a cache in front of Sluice answers'))
})

test('An origin that answers without Sluice is found.', async () => {
  const origin = stack.origin.url
  expect(await problemsOf(stack.url, { origin })).toEqual([
    `origin: ${origin} answers 200 without Sluice: a client can go around it. Let the origin accept only requests of the Worker`,
  ])
})

test('A clock of the database that is ten minutes behind is found.', async () => {
  const bridge = await startBridge({
    redis: stack.redis.url,
    token: 'a-local-token',
    clock: () => Date.now() - 600_000,
  })
  onTestFinished(() => bridge.close())
  const { url } = await start(config, { UPSTASH_REDIS_REST_URL: bridge.url })
  expect(await problemsOf(url)).toEqual(
    found('clock: the clock of the database is 10 minutes behind that of the server'),
  )
})

test('A policy in shadow mode is found.', async () => {
  const own = { ...config, policies: [policies[0]!, { ...policies[1]!, mode: 'shadow' as const }] }
  const { url } = await start(own)
  expect(await problemsOf(url, {}, own)).toEqual([
    "login: in shadow mode: it counts, and refuses nobody. Remove mode: 'shadow' to enforce it",
  ])
})

test('An entry of allow that is too wide is found.', async () => {
  const own: JsonConfig = { ...config, allow: [{ name: 'office', ip: ['0.0.0.0/0', '::/0'] }] }
  const { url } = await start(own)
  expect(await problemsOf(url, {}, own)).toEqual(
    found('login: not limited: the entry office of allow exempts this client'),
  )
})

test('A proxy that removes the field of a key is found.', async () => {
  const byUser = {
    name: 'per-user',
    limit: 5,
    window: '1h' as const,
    key: 'header:x-user' as const,
    onMissingKey: 'skip' as const,
  }
  const own: JsonConfig = { ...config, policies: [byUser] }
  const { url } = await start(own)
  expect(await problemsOf(url, {}, own)).toEqual([])
  const front = await startFront({ to: () => url, strips: ['x-user'] })
  expect(await problemsOf(front, {}, own)).toEqual([
    'per-user: not limited: the request was sent with header:x-user, and arrives without it. A proxy in front of Sluice removes the field',
  ])
})

test('A proxy that changes Retry-After is found.', async () => {
  const url = await startFront({ to: () => stack.url, answers: { 'retry-after': '1' } })
  expect(await problemsOf(url)).toEqual(found('all: Retry-After is 1, and Sluice has sent'))
})

const appConfig = (more: Partial<Options> = {}) =>
  configOf({ policies: policies as Options['policies'], use: [verify()], ...more })

/** Starts Express with a limiter. */
function startExpress(options: Options, order: 'before' | 'after' = 'before') {
  const app = express()
  const limit = rateLimiter(options)
  if (order === 'before') app.use(limit)
  app.all('/{*path}', (request, response, next) => {
    if (request.path.startsWith('/_sluice/')) next()
    else response.send('ok')
  })
  if (order === 'after') app.use(limit)
  return listen(createServer(app))
}

test('A healthy Express app has no problem.', async () => {
  const options = appConfig()
  expect(await problemsOf(await startExpress(options), {}, options)).toEqual([])
})

test('An Express app that mounts the limiter after its routes is found.', async () => {
  const options = appConfig()
  expect(await problemsOf(await startExpress(options, 'after'), {}, options)).toEqual(
    found(
      'login: not limited: POST /login answers 200 without Sluice. The app answers before the limiter',
    ),
  )
})

/** An app whose route /api/things is in front of the limiter. */
async function startHalfCovered(options: Options) {
  const app = express()
  app.get('/api/things', (_, response) => void response.send('ok'))
  app.use(rateLimiter(options))
  return listen(createServer(app))
}

test.each([{}, { path: '/api/*' }, { path: '/api/:kind' }])(
  'A route that an app answers before the limiter of a policy %j is found by its path, and without one the report is no clean one.',
  async (match) => {
    const options = appConfig({ policies: [{ name: 'api', limit: 8, window: '1h', match }] })
    const url = await startHalfCovered(options)
    const parsed = parseConfig(options, defaultFields)
    const findings = await verifyDeployment({ url, token: TOKEN, config: parsed, maxWaitMs: 1 })
    expect(findings[0]!.text).toMatch(/; as GET \/\S*, a path that is made up$/)
    expect(toText(findings)).toMatch(/^~ /)
    expect(toText(findings)).toMatch(/\nNo problem at paths that are made up\. .* --path$/)
    const text =
      'api: not limited: GET /api/things answers 200 without Sluice. The app answers before'
    const paths = [{ path: '/api/others' }, { path: '/api/things' }]
    expect(await problemsOf(url, { paths }, options)).toEqual([expect.stringContaining(text)])
    const expected = { request: { path: '/api/things', method: 'GET' }, atMost: 8, in: '1h' }
    const named = { ...options, expect: expected } as Options
    expect(await problemsOf(url, {}, named)).toEqual(
      expect.arrayContaining([expect.stringContaining(text)]),
    )
  },
)

test('A route of an app behind the limiter is proven by its path.', async () => {
  const options = appConfig({
    policies: [{ name: 'api', limit: 8, window: '1h', match: { path: '/api/*' } }],
  })
  const findings = await verifyDeployment({
    ...{ url: await startExpress(options), token: TOKEN, maxWaitMs: 1 },
    config: parseConfig(options, defaultFields),
    paths: [{ path: '/api/things' }, { method: 'POST', path: '/api/orders' }, { path: '/other' }],
  })
  expect(findings[0]!.text).toMatch(/; as GET \/api\/things and POST \/api\/orders$/)
  expect(toText(findings)).toMatch(/\nNo problem$/)
})

const onlyAll = { ...config, policies: [policies[0]!] }
let withoutPath: ReturnType<typeof startStack> | undefined
afterAll(async () => (await withoutPath)?.stop())

test.each<[string, (path: string) => boolean]>([
  ['//', (path) => path.startsWith('//')],
  ['upper case', (path) => /[A-Z]/.test(path)],
  [';x=1', (path) => path.includes(';')],
  ['an escaped letter', (path) => path.includes('%')],
])(
  'A server that routes %s past the limiter of a policy without a path is found.',
  async (_, goesAround) => {
    withoutPath ??= startStack({ config: onlyAll, env: { SLUICE_VERIFY_TOKEN: TOKEN } })
    const { url, origin } = await withoutPath
    const front = await startFront({ to: (path) => (goesAround(path) ? origin.url : url) })
    expect(await problemsOf(front, {}, onlyAll)).toEqual([
      expect.stringMatching(/^all: \S+ is answered without Sluice, and \/\S* is limited/),
    ])
  },
)

test('A Fastify app whose limiter is in a plugin beside the routes is found.', async () => {
  const options = appConfig()
  const app = fastify()
  await app.register(async (inner) => {
    await inner.register(fastifyRateLimiter(options))
    inner.get('/_sluice/v1/verify', async () => 'ok')
  })
  app.all('/', async () => 'ok')
  app.all('/login', async () => 'ok')
  await app.listen({ port: 0, host: '127.0.0.1' })
  const url = await listen(app.server)
  expect(await problemsOf(url, {}, options)).toEqual(
    found('login: not limited: POST /login answers 200'),
  )
})

test('A proxy in front that hides the addresses of clients is found.', async () => {
  const options = appConfig({ clientAddress: 'socket' })
  const app = await startExpress(options)
  const url = await startFront({ to: () => app, adds: { 'x-forwarded-for': '203.0.113.9' } })
  expect(await problemsOf(url, {}, options)).toEqual(
    found('address: counts 127.0.0.1, the address of a proxy in front, which reports 203.0.113.9'),
  )
  const right = appConfig({ clientAddress: { forwardedFor: { trustedProxies: 1 } } })
  const rightApp = await startExpress(right)
  const front = await startFront({ to: () => rightApp, adds: { 'x-forwarded-for': '203.0.113.9' } })
  expect(await problemsOf(front, {}, right)).toEqual([])
})

test('An app that believes the address that a client writes is found.', async () => {
  const options = appConfig({
    clientAddress: (request) => request.headers.get('x-forwarded-for') ?? '127.0.0.1',
  })
  expect(await problemsOf(await startExpress(options), {}, options)).toEqual(
    found(
      'address: a client chooses its own address: the server believes x-forwarded-for of everybody',
    ),
  )
})
