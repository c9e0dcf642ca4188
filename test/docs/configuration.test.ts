/**
 * Every example of docs/configuration.md and README.md, through the front door: workerd, the bridge, a real Redis.
 * An example is a block ```ts <name>, and has a scenario of that name here.
 */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { type IncomingMessage, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { generateSignedCookie } from 'hono/cookie'
import { createClient } from 'redis'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { build } from '../../dev/build.ts'
import type { Echo } from '../../dev/origin.ts'
import { type Stack, startStack } from '../../dev/stack.ts'
import { defineConfig } from '../../src/config/parse.ts'
import type { ConfigOptions } from '../../src/index.ts'
import { forge, type Issuer, json, sign, signer, startIssuer } from '../support/issuer.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** The examples of a file, by name. */
async function examplesOf(file: string): Promise<[name: string, code: string][]> {
  const content = await readFile(join(root, file), 'utf8')
  return [...content.matchAll(/^```ts *(\S*)\n(.*?)^```$/gms)]
    .map(([, name, code]): [string, string] => [name!, code!])
    .filter(([, code]) => /\b(defineConfig|rateLimiter)[<(]/.test(code))
}

const examples = [
  ...(await examplesOf('docs/configuration.md')),
  ...(await examplesOf('README.md')).filter(([, code]) => code.includes('defineConfig(')),
]
const isConfig = ([, code]: [string, string]) => code.includes('defineConfig(')
const exporting = (code: string) =>
  code.replace(/^(export default )?(?=defineConfig\()/m, 'export default ')

/** What an example hands to `defineConfig`, which checks it. */
const configOf = (code: string): ConfigOptions =>
  new Function('defineConfig', exporting(code).replace('export default', 'return'))(defineConfig)

const env = {
  SESSION_SECRET: 'a-secret-of-sessions',
  JWT_SECRET: 'a-secret-of-tokens-of-32-bytes-or-more',
  SLUICE_PROXY_TOKEN: 'a-token-of-a-proxy',
  API_KEYS: createHash('sha256').update('alpha').digest('hex'),
}

let stack: Stack
let issuer: Issuer
let outdir: string
beforeAll(async () => {
  outdir = await mkdtemp(join(tmpdir(), 'sluice-'))
  await build(outdir, 'test/support/examples-worker.ts')
  issuer = await startIssuer()
  const configs = examples.filter(isConfig).map(([name, code]) => [name, configOf(code)])
  const EXAMPLES = JSON.stringify(Object.fromEntries(configs)).replaceAll(
    'https://login.example.com/.well-known/jwks.json',
    issuer.url,
  )
  const ratelimits = { SHIELD: { limit: 200, period: 10 as const } }
  stack = await startStack({ worker: outdir, env: { ...env, EXAMPLES }, ratelimits })
})
afterAll(async () => {
  await Promise.all([stack?.stop(), issuer?.close()])
  await rm(outdir, { recursive: true })
})

interface Answer {
  status: number
  field: (name: string) => string | undefined
  /** What `RateLimit` says: of `policy` so much is `left`. */
  policy: string | undefined
  left: number | undefined
  /** A problem document, or what the origin saw. */
  body: Partial<Echo> & Record<string, unknown>
}

interface Asked {
  ip?: string
  /** What Cloudflare knows of the client. */
  cf?: Record<string, unknown>
  headers?: Record<string, string>
}

/** Asks an example as a client does: `POST /login`, or `https://shop.example.com/x`. The path is sent to the letter. */
async function send(example: string, target: string, { ip = '203.0.113.7', cf, headers }: Asked) {
  const [, method = 'GET', host = 'www.example.com', path] =
    /^(?:([A-Z]+) )?(?:https:\/\/([^/]+))?(\/.*)$/.exec(target)!
  // Miniflare's entry is what tells `cf`; it also tidies paths.
  const { hostname, port } = new URL(cf ? stack.worker.url : stack.worker.directUrl)
  const outgoing = request({
    hostname,
    port,
    method,
    path,
    agent: false,
    headers: {
      host,
      'x-example': example,
      'cf-connecting-ip': ip,
      ...(cf && { 'mf-cf-blob': JSON.stringify(cf) }),
      ...headers,
    },
  })
  outgoing.end()
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
  const body = await text(response)
  const field = (name: string) => response.headers[name]?.toString()
  const [, policy, left] = /^"(.*?)";r=(\d+)/.exec(field('ratelimit') ?? '') ?? []
  return {
    status: response.statusCode!,
    field,
    policy,
    left: left === undefined ? undefined : Number(left),
    body: body.startsWith('{') ? JSON.parse(body) : { text: body },
  } satisfies Answer as Answer
}

type Ask = (target: string, asked?: Asked) => Promise<Answer>
interface Scenario {
  ask: Ask
  /** The status of so many requests, one after the other. */
  statuses: (times: number, target: string, asked?: Asked) => Promise<number[]>
  /** How much is left after each of these requests. */
  left: (...requests: Parameters<Ask>[]) => Promise<(number | undefined)[]>
}

function scenarioOf(example: string): Scenario {
  const ask: Ask = (target, asked = {}) => send(example, target, asked)
  const inTurn = async <T>(requests: Parameters<Ask>[], what: (answer: Answer) => T) => {
    const found: T[] = []
    for (const one of requests) found.push(what(await ask(...one)))
    return found
  }
  return {
    ask,
    statuses: (times, ...one) => inTurn(Array(times).fill(one), ({ status }) => status),
    left: (...requests) => inTurn(requests, ({ left }) => left),
  }
}

/** How many HTTP requests the database gets of so many requests at once. */
async function callsOf(example: string, times = 50, target = '/'): Promise<number> {
  await send(example, target, {})
  const before = stack.httpRequests()
  const asked = Array.from({ length: times }, () => send(example, target, {}))
  const answers = await Promise.all(asked)
  expect(answers.map(({ status }) => status)).toEqual(ok(times))
  return stack.httpRequests() - before
}

const ok = (times: number) => Array(times).fill(200)

/** By the names of the examples. */
const scenarios: Record<string, (scenario: Scenario) => Promise<void>> = {
  async 'readme-policies'({ ask, statuses }) {
    expect((await ask('/')).left).toBe(9)
    expect(await statuses(6, 'POST /login')).toEqual([...ok(5), 429])
    const { field } = await ask('/')
    expect(field('ratelimit-policy')).toBe('"per-ip";q=10;w=10')
  },

  async 'readme-configuration'({ ask, left, statuses }) {
    expect(await statuses(1, '/', { ip: '192.0.2.1' })).toEqual([403])
    expect((await ask('/api/export/7', { ip: '198.51.100.9' })).policy).toBeUndefined()
    const key = { headers: { 'x-api-key': 'alpha' } }
    expect(await left(['/api/export/7', key], ['/api/things', key], ['/api/things'])).toEqual([
      80, 79, 99,
    ])
    expect((await ask('/api/health', key)).policy).toBeUndefined()
    expect(await statuses(6, 'POST //LOGIN')).toEqual([...ok(5), 429])
    expect(await statuses(4, 'POST /sign-up')).toEqual(ok(4))
    expect((await ask('POST /sign-up')).body.headers!['sluice-shadow']).toBe('"sign-up"')
  },

  async first({ ask, left }) {
    const { field } = await ask('/')
    expect(field('ratelimit-policy')).toBe('"per-ip";q=100;w=60, "per-ip-daily";q=10000;w=86400')
    expect(await left(['/'], ['/', { ip: '192.0.2.1' }], ['/'])).toEqual([98, 99, 97])
  },

  async login({ ask, statuses }) {
    expect(await statuses(5, 'POST /login')).toEqual(ok(5))
    for (const spelling of [
      '/login',
      '//login',
      '/login/',
      '/./login',
      '/x/../login',
      '/../login',
      '/%6Cogin',
      '/%6cogin',
      '/login%2F',
      '/x%2F..%2Flogin',
      '/x/%2E%2e/login',
      '/login;a=1',
      '/x;y/../login',
      '/login%3Ba',
      '/x\\..\\login',
      '/%5Clogin',
      '/LOGIN',
      '/%4Cogin',
      '/login?next=/',
    ]) {
      expect([spelling, await statuses(1, `POST ${spelling}`)]).toEqual([spelling, [429]])
    }
    for (const other of ['/%256Cogin', '/login.php', '/login%00', '/login%20', '/log%C3%ADn']) {
      const { status, policy } = await ask(`POST ${other}`)
      expect([other, status, policy]).toEqual([other, 200, undefined])
    }
    const refused = await ask('POST //LOGIN/')
    expect(refused.field('ratelimit-policy')).toBe('"login";q=5;w=60')
    expect(refused.field('ratelimit')).toBe(`"login";r=0;t=${refused.field('retry-after')}`)
    expect(refused.body['violated-policies']).toEqual(['login'])

    expect((await ask('POST /password/reset')).left).toBe(4)
    expect((await ask('POST /login', { ip: '192.0.2.1' })).left).toBe(4)
    expect((await ask('/login')).policy).toBeUndefined()
  },

  async 'per-user'({ ask, left }) {
    const targets = ['/users/7', '/users/7/orders', '/Users/%37', '/users/7;x/a', '/users/8']
    expect(await left(...targets.map((target): [string] => [target]))).toEqual([59, 58, 57, 56, 59])
    expect(await left(['/users/7', { ip: '192.0.2.1' }])).toEqual([55])
    expect((await ask('/users')).policy).toBeUndefined()
    // Two readings: charged to both users, and told as the one with less left.
    expect(await left(['/users/8/..%2Fa1%2Fx'], ['/users/a1'], ['/users/8'])).toEqual([58, 58, 57])
  },

  async 'per-key'({ ask, left }) {
    const key = (name: string): Asked => ({ headers: { 'x-api-key': name } })
    const bearer = { headers: { authorization: 'Bearer alpha' }, ip: '192.0.2.1' }
    expect(await left(['/', key('alpha')], ['/', bearer], ['/', key('beta')])).toEqual([99, 98, 99])
    // Without a key by address; and all keys of an address also count together.
    expect(await left(['/'], ['/'], ['/', { ip: '192.0.2.2' }])).toEqual([99, 98, 99])
    const { field } = await ask('/')
    expect(field('ratelimit-policy')).toBe('"per-key";q=100;w=60, "per-ip";q=1000;w=60')
  },

  async networks({ ask, left }) {
    const from = (ip: string): [string, Asked] => ['/', { ip }]
    const v4 = await left(from('198.51.100.1'), from('198.51.100.200'), from('198.51.101.1'))
    expect(v4).toEqual([299, 298, 299])
    const v6 = await left(from('2001:db8:1:2::3'), from('2001:db8:1:ffff::'), from('2001:db8:2::3'))
    expect(v6).toEqual([299, 298, 299])
    expect(await left(from('::ffff:198.51.100.9'))).toEqual([297])

    // Each sign-up from another network, so that the country is nearest to exhaustion from the second on.
    const signUp = (country: string, network: number): [string, Asked] => [
      'POST /sign-up',
      { ip: `100.64.${network}.1`, cf: { country } },
    ]
    expect(await left(signUp('DE', 1), signUp('DE', 2), signUp('DE', 3))).toEqual([299, 498, 497])
    expect(await left(signUp('FR', 4), signUp('FR', 5))).toEqual([299, 498])
    expect((await ask(...signUp('DE', 6))).policy).toBe('sign-ups')
  },

  async parts({ ask, left, statuses }) {
    expect(await statuses(4, '/search?q=a%20b&page=2')).toEqual([...ok(3), 429])
    expect((await ask('/search?page=3&q=a+b')).status).toBe(429)
    expect(await left(['/search?q=c'], ['/search?q=a+b', { ip: '192.0.2.1' }])).toEqual([2, 2])

    const session = (cookie: string, ip: string): [string, Asked] => [
      '/basket',
      { ip, headers: { cookie } },
    ]
    const baskets = [
      session('session=x; a=b', '192.0.2.2'),
      session('session=x', '192.0.2.3'),
      session('session=y', '192.0.2.3'),
      session('session=x; session=y', '192.0.2.3'), // which of the two: by address
      session('a=b', '192.0.2.3'),
    ]
    expect(await left(...baskets)).toEqual([29, 28, 29, 29, 28])

    const partner = (name: string): Asked => ({ headers: { 'x-partner': name } })
    expect(await left(['/feed', partner('acme')], ['/feed', partner('acme')])).toEqual([49, 48])
    expect(await left(['/feed', partner('globex')])).toEqual([49])
    for (const asked of [{}, partner('')]) {
      const { status, field, policy, body } = await ask('/feed', asked)
      expect([status, policy, field('cache-control')]).toEqual([403, undefined, 'no-store'])
      expect(field('content-type')).toBe('application/problem+json')
      expect(body).toEqual({
        type: 'about:blank',
        status: 403,
        title: 'Forbidden',
        detail: 'The request lacks header:x-partner.',
      })
    }

    const sites = [
      'https://a.shops.example/',
      'https://A.shops.example:8443/x',
      'POST https://a.shops.example/',
      'https://b.shops.example/',
      'https://shops.example/',
    ]
    expect(await left(...sites.map((site): [string] => [site]))).toEqual([
      4999,
      4998,
      4999,
      4999,
      undefined,
    ])

    const network = (asn?: number): [string, Asked] => ['/sign-up', { cf: { asn } }]
    expect(await left(network(64500), network(64500), network(64501), network())).toEqual([
      19,
      18,
      19,
      undefined,
    ])
    const colo = (colo: string): [string, Asked] => ['/tiles/7/3', { cf: { colo } }]
    expect(await left(colo('FRA'), colo('FRA'), colo('AMS'))).toEqual([399, 398, 399])
    expect(await left(['/print'], ['/print', { ip: '192.0.2.4' }])).toEqual([9, 8])
  },

  async match({ ask, left }) {
    const shop = 'https://eu.shop.example.com/'
    const agent = (name: string, ip = '203.0.113.7'): Asked => ({
      ip,
      cf: { country: 'DE' },
      headers: { 'user-agent': name },
    })
    expect(
      await left(
        [shop, agent('Mozilla/5.0 (compatible; ExampleBot/2.1)')],
        ['https://shop.example.com/', agent('a Crawler', '192.0.2.1')],
        [shop, agent('Mozilla/5.0')],
        [shop, agent('ExampleBot', '198.51.100.9')],
        ['https://www.example.com/', agent('ExampleBot')],
        ['https://example.com/', agent('ExampleBot')],
      ),
    ).toEqual([9, 8, undefined, undefined, undefined, undefined])

    const at = { cf: { country: 'at' } }
    const met = async (target: string, asked: Asked = at) =>
      (await ask(target, asked)).field('ratelimit-policy')?.match(/"[^"]+"/g)
    expect(await met('/api/things')).toEqual(['"api"'])
    expect(await met('/api')).toEqual(['"api"'])
    expect(await met('/api/health')).toBeUndefined()
    expect(await met('HEAD /api/health')).toBeUndefined()
    expect(await met('POST /api/health')).toEqual(['"api"'])
    expect(await met('/apis')).toBeUndefined()
    expect(await met('DELETE /api/things/7')).toEqual(['"api"', '"api-deletes"'])
    expect(await met('/', { cf: { country: 'FR' } })).toEqual(['"abroad"'])
    expect(await met('/', { cf: {} })).toEqual(['"abroad"'])
    expect(await met('/', { cf: {}, headers: { 'cf-ipcountry': 'DE' } })).toEqual(['"abroad"'])
  },

  async 'case-sensitive'({ left }) {
    expect(await left(['/s/aB'], ['/s/%61B/'], ['/s/ab'], ['/S/aB'])).toEqual([
      99,
      98,
      99,
      undefined,
    ])
  },

  async allow({ ask, statuses }) {
    const requests = stack.httpRequests()
    for (const ip of ['198.51.100.20', '2001:db8:ff1::1', '10.9.8.7', '::ffff:10.9.8.7']) {
      const { status, field } = await ask('/reports/7', { ip })
      expect([ip, status, field('ratelimit-policy')]).toEqual([ip, 200, undefined])
    }
    expect((await ask('/health')).policy).toBeUndefined()
    expect(stack.httpRequests()).toBe(requests)
    expect((await ask('POST /health')).policy).toBe('per-ip')
    expect(await statuses(2, '/reports/7')).toEqual([200, 429])
    expect(await statuses(3, '/reports/7', { ip: '203.0.113.80' })).toEqual(ok(3))
    expect((await ask('/', { ip: '203.0.113.80' })).left).toBe(96)
  },

  async deny({ ask }) {
    const requests = stack.httpRequests()
    const denied = async (target: string, asked: Asked) => (await ask(target, asked)).status === 403
    expect(await denied('/', { ip: '192.0.2.1' })).toBe(true) // whatever `allow` says
    expect(await denied('/', { ip: '2001:db8:bad:7::1' })).toBe(true)
    expect(await denied('//appeal/', { ip: '192.0.2.1' })).toBe(false)
    expect(await denied('/', { ip: '192.0.2.10' })).toBe(false)
    expect(stack.httpRequests()).toBe(requests) // both are allowed besides
    expect(await denied('/', { ip: '192.0.3.1' })).toBe(false)

    const agent = (name: string): Asked => ({ headers: { 'user-agent': name } })
    expect(await denied('/', agent('Scrapy/2.11 (+https://scrapy.org)'))).toBe(true)
    expect(await denied('/robots.txt', agent('python-requests/2.32'))).toBe(false)
    expect(await denied('/', agent('my python-requests/2.32'))).toBe(false)
    expect(await denied('POST /sign-up', { cf: { country: 'T1' } })).toBe(true)
    expect(await denied('/sign-up', { cf: { country: 'T1' } })).toBe(false)

    const { body, field } = await ask('/', { ip: '192.0.2.1' })
    expect(field('cache-control')).toBe('no-store')
    expect(body).toEqual({
      type: 'about:blank',
      status: 403,
      title: 'Forbidden',
      detail: 'The request is on a deny list.',
    })
  },

  async exports({ ask, left, statuses }) {
    const key: Asked = { headers: { 'x-api-key': 'alpha' } }
    const deep: Asked = { headers: { 'x-api-key': 'alpha', 'X-Depth': 'full' } }
    expect(
      await left(
        ['/api/export/7', key],
        ['/API/export//7', key],
        ['/api/search', key],
        ['/api/search', deep],
        ['POST /api/things', key],
        ['POST /api/export/7', key],
        ['/api/quota', key],
      ),
    ).toEqual([75, 50, 49, 44, 42, 17, 17])
    const { status, left: rest, field } = await ask('/api/export/7', key)
    expect([status, rest]).toEqual([429, 17])
    expect(Number(field('retry-after'))).toBeGreaterThan(0)
    expect(await statuses(17, '/api/things', key)).toEqual(ok(17))
    expect(await statuses(2, '/api/quota', key)).toEqual(ok(2))
    expect((await ask('/api/quota')).body.detail).toBe('The request lacks api-key.')
  },

  async outcomes({ ask, left, statuses }) {
    const failing = 'POST /login?answer-status=401'
    expect(await statuses(3, 'POST /login')).toEqual(ok(3))
    await expect.poll(async () => (await ask('POST /login')).left, { timeout: 10_000 }).toBe(4)
    await sleep(500)
    const all = await Promise.all(Array.from({ length: 20 }, () => ask(failing)))
    expect(all.filter(({ status }) => status === 401)).toHaveLength(5)
    expect(await statuses(1, 'POST /login')).toEqual([429])

    const completion = '/v1/completions?answer-header=x-tokens:20'
    const dear = (await ask(completion)).left!
    expect(dear).toBe(9500)
    // Tokens also come back by time, three a second.
    await expect
      .poll(async () => (await left([completion]))[0], { timeout: 10_000, interval: 500 })
      .toBeGreaterThan(9300)
  },

  async penalties({ ask }) {
    const problems = new Set<unknown>()
    for (let burst = 0; burst < 5 && problems.size < 2; burst++) {
      const all = await Promise.all(Array.from({ length: 40 }, () => ask('/')))
      for (const { status, body } of all) if (status === 429) problems.add(body.title)
    }
    expect([...problems].sort()).toEqual(['Abnormal usage detected', 'Quota exceeded'])
    await sleep(1100)
    const { status, field, body } = await ask('/')
    expect([status, body['violated-policies']]).toEqual([429, ['per-ip']])
    expect(Number(field('retry-after'))).toBeGreaterThan(200)
    expect((await ask('/', { ip: '192.0.2.1' })).status).toBe(200)
  },

  async plans({ ask, left }) {
    const by = async (claims: object): Promise<Asked> => {
      const token = await sign(claims, { alg: 'HS256' }, Buffer.from(env.JWT_SECRET))
      return { headers: { authorization: `Bearer ${token}` } }
    }
    expect(
      await left(
        ['/api/a', await by({ sub: 'ann', plan: 'pro' })],
        ['/api/a', await by({ sub: 'ann', plan: 'free' })], // who has changed to a smaller one
        ['/api/a', await by({ sub: 'bob', plan: 'free' })],
        ['/api/a', await by({ sub: 'cat', plan: 'gold' })],
        ['/api/a'],
      ),
    ).toEqual([4999, 98, 99, 9, 9])
    const tenants = ['acme', 'globex', 'initech']
    const told = await Promise.all(
      tenants.map(async (tenant) => (await ask('/tenants/a', await by({ tenant }))).left),
    )
    expect(told).toEqual([19_999, 199, 49])
  },

  async live({ ask }) {
    const redis = await createClient({ url: stack.redis.url }).connect()
    const document = { policies: [{ name: 'per-ip', limit: 20, window: '1m' }] }
    await redis.set('sluice:live', JSON.stringify(document))
    redis.destroy()
    const quota = async () => (await ask('/')).field('ratelimit-policy')
    expect(await quota()).toBe('"per-ip";q=100;w=60')
    await expect.poll(quota, { timeout: 10_000 }).toBe('"per-ip";q=20;w=60')
  },

  async namespace({ ask }) {
    const redis = await createClient({ url: stack.redis.url }).connect()
    expect(await redis.keys('sluice:1:shop:*')).toEqual([])
    expect((await ask('/')).left).toBe(99)
    expect(await redis.keys('sluice:1:shop:*')).toEqual([
      expect.stringMatching(/^sluice:1:shop:\{[\w-]{16}\}$/),
    ])
    redis.destroy()
  },

  async calendar({ ask }) {
    const key: Asked = { headers: { 'x-api-key': 'alpha' } }
    const { field } = await ask('/', key)
    expect(field('ratelimit-policy')).toMatch(
      /^"monthly";q=10000;w=2[4-7]\d{5}, "daily";q=500;w=86400$/,
    )
    const keyed = await Promise.all(Array.from({ length: 5 }, () => ask('/', key)))
    expect(keyed.every(({ status }) => status === 200)).toBe(true)
    const wait = Number(/;t=(\d+)/.exec((await ask('/')).field('ratelimit')!)![1])
    const midnight = new Date(Date.now() + wait * 1000 - 500).toISOString()
    expect(midnight).toMatch(/T(00:00:0|23:59:59)/)
  },

  async concurrency({ ask, statuses }) {
    const slow = Array.from({ length: 5 }, () => ask('/reports/7?answer-after=1500'))
    const answers = await Promise.all(slow)
    const refused = answers.filter(({ status }) => status === 429)
    expect(refused).toHaveLength(3)
    expect(refused[0]!.field('ratelimit-policy')).toBe('"reports";q=2;qu="concurrent-requests"')
    expect(refused[0]!.field('ratelimit')).toBe('"reports";r=0')
    expect(refused[0]!.field('retry-after')).toBeUndefined()
    const { detail, retryAfterMs } = refused[0]!.body
    expect(retryAfterMs).toBeGreaterThan(500_000)
    expect(detail).toBe(
      `Too many requests are in flight: this one passes when one of them ends, at the latest in ${retryAfterMs} ms.`,
    )
    await expect.poll(async () => (await ask('/reports/8')).left, { timeout: 10_000 }).toBe(1)
    await sleep(300)
    expect(await statuses(1, '/reports/8')).toEqual([200])
  },

  async github({ ask }) {
    const { field } = await ask('/')
    const full = await ask('/', { ip: '192.0.2.1' })
    expect([field('ratelimit'), field('x-ratelimit-limit')]).toEqual([undefined, '5000'])
    expect([field('x-ratelimit-remaining'), field('x-ratelimit-used')]).toEqual(['4999', '1'])
    expect(field('x-ratelimit-resource')).toBe('core')
    const wait = Number(full.field('x-ratelimit-reset')) - Date.now() / 1000
    expect(wait).toBeGreaterThan(3590)
    expect(wait).toBeLessThan(3602)
  },

  async iso({ ask }) {
    const { field } = await ask('/')
    expect(field('x-ratelimit-remaining')).toBe('99')
    expect(field('x-ratelimit-reset')).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
    const wait = Date.parse(field('x-ratelimit-reset')!) - Date.now()
    expect(wait).toBeGreaterThan(0)
    expect(wait).toBeLessThan(121_000)
  },

  async 'two-sets'({ ask, statuses }) {
    const { field } = await ask('/')
    expect(field('ratelimit-policy')).toBe('"minute";q=10;w=60, "day";q=1000;w=86400')
    expect(field('ratelimit')).toBe('"minute";r=9;t=60')
    expect(field('x-ratelimit-limit')).toBe('10')
    expect(field('x-ratelimit-remaining')).toBe('9')
    const wait = Number(field('x-ratelimit-reset')) - Date.now() / 1000
    expect(Math.abs(wait - 60)).toBeLessThan(5)
    expect(await statuses(10, '/')).toEqual([...ok(9), 429])
    expect((await ask('/')).field('x-ratelimit-remaining')).toBe('0')
  },

  async cors({ ask, statuses }) {
    const page = (origin: string): Asked => ({ headers: { origin } })
    expect(await statuses(10, '/', page('https://app.example.com'))).toEqual(ok(10))
    const refused = await ask('/', page('https://app.example.com'))
    expect(refused.status).toBe(429)
    const ours = ['origin', 'credentials'].map((name) => `access-control-allow-${name}`)
    expect(ours.map(refused.field)).toEqual(['https://app.example.com', 'true'])
    const exposed = 'RateLimit-Policy, RateLimit, Retry-After'
    expect(refused.field('access-control-expose-headers')).toBe(exposed)
    expect(refused.field('vary')).toMatch(/\borigin\b/i)
    const other = await ask('/', page('https://elsewhere.example'))
    expect([other.status, ...ours.map(other.field)]).toEqual([429, undefined, undefined])

    const preflight = { 'access-control-request-method': 'POST', origin: 'https://app.example.com' }
    expect((await ask('OPTIONS /', { headers: preflight })).status).toBe(200)
    expect((await ask('OPTIONS /')).status).toBe(429)
  },

  async tenants({ ask, left, statuses }) {
    const by = async (claims: object, secret = env.JWT_SECRET): Promise<Asked> => {
      const standard = { iss: 'https://login.example.com', aud: 'api' }
      const token = await sign({ ...standard, ...claims }, { alg: 'HS256' }, Buffer.from(secret))
      return { headers: { authorization: `Bearer ${token}` } }
    }
    const users = [
      await by({ sub: 'ann', tenant: 'acme' }),
      await by({ sub: 'bob', tenant: 'acme' }),
      await by({ sub: 'cat', tenant: 'globex' }),
    ]
    expect(await left(...users.map((user): [string, Asked] => ['/api/things', user]))).toEqual([
      999, 998, 999,
    ])
    const unverified: Asked[] = [
      await by({ tenant: 'acme' }, 'another secret of at least 32 bytes'),
      await by({ tenant: 'acme', aud: 'shop' }),
      await by({ tenant: 'acme', iss: 'https://evil.example' }),
      await by({ tenant: 'acme', exp: Math.floor(Date.now() / 1000) - 60 }),
      { headers: { authorization: `Bearer ${forge({ alg: 'none' }, { tenant: 'acme' })}` } },
    ]
    for (const asked of [{}, await by({ sub: 'ann' })]) {
      const { status, body } = await ask('/api/things', asked)
      expect([status, body.detail]).toEqual([403, 'The request lacks jwt:tenant.'])
    }
    for (const asked of unverified) {
      const { status, body } = await ask('/api/things', asked)
      expect([status, body.detail]).toEqual([403, 'The token could not be verified.'])
    }
    expect(await statuses(1, '/')).toEqual([200])
  },

  async issuer({ left }) {
    const ann = await signer('ES256', 'key-1')
    const claims = { iss: 'https://login.example.com', aud: 'https://www.example.com', sub: 'ann' }
    const stranger = await signer('ES256', 'key-1')
    issuer.answer = json({ keys: [ann.jwk] })
    const bearer = async (token: Promise<string>): Promise<Asked> => ({
      headers: { authorization: `Bearer ${await token}` },
    })
    const cookie = { ip: '192.0.2.1', headers: { cookie: `session=${await ann.sign(claims)}` } }
    expect(
      await left(
        ['/', await bearer(ann.sign(claims))],
        ['/', cookie],
        ['/', await bearer(stranger.sign(claims))],
        ['/'],
        ['/', await bearer(ann.sign({ ...claims, iss: 'https://evil.example' }))],
      ),
    ).toEqual([59, 58, 59, 58, 57])
    expect(issuer.fetches).toBe(1)
  },

  async 'known-keys'({ ask, left }) {
    const key = (name: string): Asked => ({ headers: { 'x-api-key': name } })
    expect(await left(['/', key('alpha')], ['/', key('alpha')])).toEqual([999, 998])
    for (const [asked, detail] of [
      [key('invented'), 'The API key is not known.'],
      [key('alpha, alpha'), 'The request has no single readable value of api-key.'],
      [{}, 'The request lacks api-key.'],
    ] as const) {
      const { status, body } = await ask('/', asked)
      expect([status, body.detail]).toEqual([403, detail])
    }
  },

  async 'trusted-proxy'({ ask, left }) {
    const said = (headers: Record<string, string>): [string, Asked] => [
      'POST /v1/completions',
      { headers: { 'X-Customer': 'acme', ...headers } },
    ]
    const token = { 'Sluice-Token': env.SLUICE_PROXY_TOKEN }
    expect(
      await left(
        said({ ...token, 'Sluice-Cost': '42' }),
        said(token),
        said({ 'Sluice-Cost': '1' }),
        said({ 'Sluice-Cost': '1', 'Sluice-Token': 'a-token-that-is-none' }),
        said({ ...token, 'Sluice-Cost': '-8' }),
        said({ ...token, 'Sluice-Cost': '0' }),
      ),
    ).toEqual([9958, 9458, 8958, 8458, 7958, 7958])
    const { body, status } = await ask(...said({ ...token, 'Sluice-Cost': '7959' }))
    expect([status, body.title]).toEqual([429, 'Quota exceeded'])
    const { body: echo } = await ask(...said({ ...token, 'Sluice-Cost': '1' }))
    expect(Object.keys(echo.headers!).filter((name) => name.startsWith('sluice'))).toEqual([])
  },

  async shadow({ ask }) {
    const told = async (target: string) => {
      const { status, field, body } = await ask(target, {
        headers: { 'Sluice-Shadow': '"invented"' },
      })
      expect([status, field('ratelimit-policy')]).toEqual([200, '"per-ip";q=100;w=60'])
      return body.headers!['sluice-shadow']
    }
    expect(await told('/sign-up')).toBeUndefined()
    expect(await told('/sign-up')).toBe('"sign-up"')
    expect(await told('/sign-up')).toBe('"per-ip-strict", "sign-up"')
    expect(await told('/')).toBe('"per-ip-strict"')
    const lines = () => stack.worker.logs.map((line) => JSON.parse(line))
    await expect
      .poll(lines)
      .toContainEqual(expect.objectContaining({ event: 'shadow-refused', code: 'per-ip-strict' }))
  },

  async parallel({ statuses }) {
    const before = stack.origin.requests()
    expect(await statuses(64, '/catalogue/7')).toEqual([...ok(60), 429, 429, 429, 429])
    // The refusals that are proven never got there.
    expect(stack.origin.requests() - before).toBeGreaterThanOrEqual(60)
    expect(stack.origin.requests() - before).toBeLessThanOrEqual(61)
  },

  async batching() {
    expect(await callsOf('batching')).toBe(50)
    expect(await callsOf('first')).toBeLessThan(40)
  },

  async shield({ left, statuses }) {
    expect(await left(['/'], ['/'])).toEqual([99, 98])
    // Who keeps to the policies does not meet it, and who does not is mostly refused without it.
    expect(await statuses(100, '/')).toEqual([...ok(98), 429, 429])
    expect(stack.worker.logs.filter((line) => line.includes('"shield"'))).toEqual([])
  },
  async shards({ left }) {
    const of = (tenant: string) => ({ headers: { 'x-tenant': tenant } })
    for (let n = 1; n <= 4; n++) {
      const ip = `192.0.2.${n}`
      expect(await left(['/', { ip }], ['/', { ip, ...of(`t-${n}`) }])).toEqual([99, 98])
    }
    expect(await left(['/', { ip: '192.0.2.9', ...of('t-1') }])).toEqual([99])
  },
  async leases() {
    expect(await callsOf('leases', 300, '/search')).toBeLessThan(150)
    expect(await callsOf('leases', 300, '/search')).toBeLessThan(20)
  },

  async 'key-function'({ ask, left }) {
    const cookie = await generateSignedCookie('user', 'ann', env.SESSION_SECRET)
    const ann = { headers: { cookie: cookie.split(';')[0]! } }
    const forged = { headers: { cookie: ann.headers.cookie.replace('ann', 'bob') } }
    expect((await ask('/', ann)).body.text).toBe('Hello ann.')
    expect(await left(['/', ann], ['/', { ...ann, ip: '192.0.2.1' }])).toEqual([58, 57])
    expect((await ask('/', forged)).body.text).toBe('Hello stranger.')
    expect(await left(['/', forged], ['/'], ['/', { ip: '192.0.2.2' }])).toEqual([58, 57, 59])
  },
}

test('each example has a scenario, and each scenario an example', () => {
  expect(examples.map(([name]) => name).sort()).toEqual(Object.keys(scenarios).sort())
})

test('each example is of the types that are published', async () => {
  const folder = join(root, 'dist/examples')
  await mkdir(folder, { recursive: true })
  const head = "import { defineConfig } from '../../src/index.ts'\n"
  for (const [name, code] of examples.filter(isConfig)) {
    await writeFile(join(folder, `${name}.ts`), head + exporting(code))
  }
  const tsconfig = { extends: '../../tsconfig.json', include: ['*.ts', '../../src/lua.d.ts'] }
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(tsconfig))
  const tsc = join(root, 'node_modules/.bin/tsc')
  const said = await promisify(execFile)(tsc, ['-p', folder]).catch(({ stdout }) => ({ stdout }))
  expect(said.stdout).toBe('')
})

test('the example that is code is the file in examples/', async () => {
  const file = await readFile(join(root, 'examples/key-function.ts'), 'utf8')
  const published = file.replace(/^\/\*\*.*\n/, '').replace(/'\.\.\/src\/index\.ts'.*/, "'sluice'")
  expect(examples.find((example) => !isConfig(example))).toEqual(['key-function', published])
})

test.each(Object.entries(scenarios))('%s', (name, run) => run(scenarioOf(name)))
