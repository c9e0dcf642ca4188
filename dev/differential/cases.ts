/** Random configurations and requests. The same generator of numbers gives the same ones. */

type Random = () => number

const pick = <T>(random: Random, ...of: T[]): T => of[Math.floor(random() * of.length)]!
const chance = (random: Random, share: number) => random() < share
const whole = (random: Random, least: number, most: number) =>
  least + Math.floor(random() * (most - least + 1))

const condition = (random: Random) =>
  pick<object>(
    random,
    { path: '/a/*' },
    { method: ['POST'] },
    { header: { 'x-user': 'u1' } },
    { query: { q: '1' } },
    { not: { path: '/b' } },
    {},
  )

function cost(random: Random): unknown {
  return pick<unknown>(
    random,
    undefined,
    undefined,
    2,
    0,
    { rules: [{ ...condition(random), cost: whole(random, 0, 4) }], otherwise: 2 },
    { otherwise: 3, response: 'x-cost' },
  )
}

const key = (random: Random) =>
  pick<unknown>(
    random,
    undefined,
    'ip',
    'ip',
    'global',
    'header:x-user',
    ['ip', 'header:x-user'],
    'path',
    (request: Request) => request.headers.get('x-user'),
  )

function policy(random: Random, name: string): object {
  const algorithm = pick(
    random,
    undefined,
    undefined,
    'fixed-window',
    'sliding-window',
    'token-bucket',
    'sliding-log',
    'concurrency',
  )
  const isCalendar = algorithm === 'fixed-window' && chance(random, 0.3)
  return {
    name,
    limit: whole(random, 1, 12),
    window: isCalendar ? pick(random, 'day', 'month') : pick(random, '1s', '10s', '1m', '1h'),
    algorithm,
    key: key(random),
    cost: algorithm === 'concurrency' ? undefined : cost(random),
    ...(chance(random, 0.4) && { match: condition(random) }),
    ...(chance(random, 0.2) && { mode: 'shadow' }),
    ...(chance(random, 0.3) && { onMissingKey: pick<unknown>(random, 'refuse', 'skip', 'ip') }),
    ...(chance(random, 0.6) && { onStoreError: pick(random, 'allow', 'deny', 'local') }),
    ...(chance(random, 0.2) && { countOnly: pick(random, '4xx', '2xx') }),
    ...(chance(random, 0.2) && {
      penalty: { after: 2, within: '1m', ban: pick(random, '5s', '2m') },
    }),
    ...(chance(random, 0.2) && { reserve: [{ match: condition(random), share: 0.5 }] }),
    ...(chance(random, 0.15) && { plan: 'header:x-plan', limits: { free: 2, pro: 9 } }),
    ...(algorithm === 'token-bucket' && chance(random, 0.5) && { burst: whole(random, 1, 20) }),
    ...(chance(random, 0.2) && { lease: { max: whole(random, 1, 5), ttl: '2s' } }),
  }
}

/** A configuration, apart from the features and what the run itself sets. It may be invalid. */
export function randomConfig(random: Random) {
  const names = ['one', 'two', 'three'].slice(0, pick(random, 1, 1, 2, 3))
  return {
    policies: names.map((name) => policy(random, name)),
    hashKeys: chance(random, 0.5),
    denialCache: chance(random, 0.7),
    batching: chance(random, 0.7),
    ...(chance(random, 0.2) && { deny: [{ name: 'bad', header: { 'x-user': 'u4' } }] }),
    ...(chance(random, 0.2) && { allow: [{ name: 'good', header: { 'x-user': 'u3' } }] }),
    ...(chance(random, 0.2) && { cors: { origins: ['https://page.example'] } }),
    ...(chance(random, 0.4) && {
      headers: pick<unknown>(random, 'draft-7', 'draft-6', 'github', ['draft-11', 'github']),
    }),
  }
}

/** What the network does to the calls of a request. */
export type Fault = 'none' | 'down' | 'lost' | 'page' | 'slow'

const FAULTS: Fault[] = ['down', 'down', 'lost', 'lost', 'page', 'page', 'slow']

/** One request, the response to it, and what happens around it. */
export interface Case {
  request: () => Request
  address: string
  /** How much time passes before it, ms. */
  afterMs: number
  fault: Fault
  response: () => Response
}

/**
 * Requests that arrive together: most times one.
 * @param isOrdered false if requests that arrive together have no order. Then each one arrives alone
 */
export function randomCases(random: Random, isOrdered: boolean): Case[] {
  const count = chance(random, 0.12) && isOrdered ? whole(random, 2, 6) : 1
  return Array.from({ length: count }, () => randomCase(random))
}

function randomCase(random: Random): Case {
  const headers = {
    ...(chance(random, 0.8) && { 'x-user': `u${whole(random, 1, 4)}` }),
    ...(chance(random, 0.5) && { 'x-plan': pick(random, 'free', 'pro', 'none') }),
    ...(chance(random, 0.2) && { accept: 'text/html' }),
    ...(chance(random, 0.2) && { origin: 'https://page.example' }),
  }
  const method = pick(random, 'GET', 'GET', 'HEAD', 'POST')
  const path = pick(random, '/a/1', '/a/2', '/b', '/c?q=1', '/A/%31', '/b;x/../a/1')
  const status = pick(random, 200, 200, 404, 500)
  const own = {
    ...(chance(random, 0.3) && { 'x-cost': `${whole(random, 0, 5)}` }),
    ...(chance(random, 0.2) && { 'access-control-allow-origin': '*' }),
    ...(chance(random, 0.1) && { RateLimit: '"origin";r=1;t=5' }),
  }
  return {
    request: () => new Request(`https://app.example${path}`, { method, headers }),
    address: pick(
      random,
      '203.0.113.1',
      '203.0.113.2',
      '2001:db8::1',
      '2001:db8::2',
      '::ffff:203.0.113.1',
    ),
    afterMs: pick(random, 0, 0, 1, 7, 400, 1_500, 9_000, 61_000),
    fault: chance(random, 0.06) ? pick<Fault>(random, ...FAULTS) : 'none',
    response: () => new Response(method === 'HEAD' ? null : 'ok', { status, headers: own }),
  }
}
