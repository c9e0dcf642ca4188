/** Random requests, and what happens around them. */
import { createHmac } from 'node:crypto'
import { API_KEYS, type Drawn, VARIABLES } from './configs.ts'
import type { Draw } from './draw.ts'

/** What the network does to the calls to Redis: `stopped` is a bridge whose Redis has ended. */
export type Fault = 'down' | 'lost' | 'page' | 'slow' | 'stopped'

/** The faults of a time, ms since the epoch. */
export interface Outage {
  from: number
  to: number
  fault: Fault
}

/** One request, and what it meets. */
export interface Case {
  /** When it arrives, ms since the epoch. */
  at: number
  /** Which of two isolates it reaches. */
  isolate: 0 | 1
  /** The request, as JSON. */
  text: string
  /** What Cloudflare knows of the client. */
  cf: object
  /** The address of the connection. */
  address: string
  /** When the client gives up, ms after its arrival. Undefined if it does not. */
  leaves: number | undefined
  response: () => Promise<Response>
}

export function requestOf({ text }: Case, signal: AbortSignal): Request {
  const { url, ...init } = JSON.parse(text)
  return new Request(url, { ...init, signal })
}

const ADDRESSES = [
  '203.0.113.1',
  '203.0.113.2',
  '2001:db8::1',
  '2001:db8::2',
  '::ffff:203.0.113.1',
] as const

const tokenOf = (claims: object) => {
  const signed = [{ alg: 'HS256', typ: 'JWT' }, claims]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.')
  return `${signed}.${createHmac('sha256', VARIABLES.JWT_SECRET).update(signed).digest('base64url')}`
}
const TOKENS = [
  tokenOf({ sub: 's1', plan: 'pro', quota: 5 }),
  tokenOf({ sub: 's2', plan: 'free', quota: 40 }),
  tokenOf({ sub: 's3', quota: 'many' }),
  tokenOf({ sub: 's1', exp: 1 }),
  `${tokenOf({ sub: 's1' })}x`,
]

/** A request in words, as it is sent to an app or gateway and described to the decision API. */
function drawn({ pick, chance, whole }: Draw) {
  const headers: Record<string, string> = {
    ...(chance(0.8) && { 'x-user': `u${whole(1, 4)}` }),
    ...(chance(0.4) && { 'x-plan': pick('free', 'pro', 'none') }),
    ...(chance(0.4) && { cookie: pick('sid=a', 'sid=b; other=1', 'sid="a"', 'sid=a; sid=b') }),
    ...(chance(0.3) && { 'x-api-key': pick(...API_KEYS) }),
    ...(chance(0.4) && { authorization: `Bearer ${pick(...TOKENS, ...API_KEYS)}` }),
    ...(chance(0.3) && { 'x-real-ip': pick(...ADDRESSES, 'unknown') }),
    ...(chance(0.3) && { 'x-forwarded-for': pick('198.51.100.7', '10.0.0.1, 203.0.113.2', 'x') }),
    ...(chance(0.5) && { 'cf-connecting-ip': pick(...ADDRESSES) }),
    ...(chance(0.2) && { accept: pick('text/html', '*/*') }),
    ...(chance(0.2) && { origin: pick('https://page.example', 'https://evil.example') }),
    ...(chance(0.2) && { 'x-price': `${whole(0, 5)}` }),
    ...(chance(0.2) && { 'sluice-token': pick(VARIABLES.SLUICE_PROXY_TOKEN, 'wrong') }),
  }
  const method = pick('GET', 'GET', 'GET', 'HEAD', 'POST', 'POST', 'OPTIONS')
  const body = pick<unknown>(
    { method: 'call', user: { name: 'u1' }, arguments: { a: 1, b: [2] }, max_tokens: 3 },
    { method: 'list', user: { name: 'u2' }, arguments: { b: [2], a: 1 }, max_tokens: 1.5 },
    [{ method: 'call' }, { user: { name: 'u3' } }],
    '{',
  )
  const path = pick(
    '/a/1',
    '/a/2',
    '/b',
    '/c?q=1',
    '/A/%31',
    '/b;x/../a/1',
    '/a//1/?q=2',
    '/c?Q=1&q=1',
  )
  return {
    url: `https://${pick('app.example', 'app.example', 'other.example')}${path}`,
    method,
    headers: method === 'POST' ? { ...headers, 'content-type': 'application/json' } : headers,
    ...(method === 'POST' && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  }
}

type Sent = ReturnType<typeof drawn>

/** The field of `sluice verify`, signed at about `now`. */
function verifyField({ pick, chance, whole }: Draw, { config }: Drawn, now: number): string {
  const { name } = pick(...config.policies)
  const at = now + pick(0, 0, 0, 60_000, -400_000)
  const [policy, cost] = pick<[unknown, unknown]>(['', ''], [name, ''], [name, whole(0, 20)])
  const kind = chance(0.3) ? 'through' : 'answer'
  const text = `v1;nonce-of-${whole(1, 2)};${whole(0, 999)};${at};${kind};${policy};${cost}`
  const token = chance(0.9) ? VARIABLES.SLUICE_VERIFY_TOKEN : 'wrong'
  return `${text};${createHmac('sha256', token).update(text).digest('base64url')}`
}

/** Values for the key of a policy. */
const valuesOf = ({ pick, whole }: Draw, key: unknown): unknown =>
  [key].flat().map((part) => {
    if (part === 'ip' || Object.hasOwn(Object(part), 'ip')) return pick(...ADDRESSES)
    return part === 'global' ? null : `u${whole(1, 4)}`
  })

/** A call of the decision API. */
function apiCall(draw: Draw, { config, use }: Drawn, now: number): Sent {
  const { pick, chance, whole } = draw
  const { name, key } = pick(...config.policies)
  const { url, method, headers, body } = drawn(draw)
  const described = {
    request: { url, method, headers, ip: pick(...ADDRESSES), ...(body && { body }) },
  }
  const target = () => (chance(0.6) ? { key: valuesOf(draw, key ?? 'ip') } : described)
  const ask = () => ({
    ...(chance(0.5) ? { policy: name, key: valuesOf(draw, key ?? 'ip') } : described),
    ...(chance(0.3) && { cost: whole(0, 4) }),
  })
  const list = (one: () => object) =>
    chance(0.3) ? Array.from({ length: whole(1, 5) }, one) : one()
  const at = `/_sluice/v1/policies/${name}`
  const operate = VARIABLES.SLUICE_OPERATE_TOKEN
  const bans = (query: string): [string, string] => [`${at}/bans${query}`, operate]
  const byApi = VARIABLES.SLUICE_API_TOKEN
  const [path, token, content, verb] = pick<[string, string, unknown?, string?]>(
    ['/_sluice/v1/decide', byApi, list(() => ({ ...ask(), ...(chance(0.2) && { mode: 'peek' }) }))],
    ['/_sluice/v1/decide', byApi, list(ask)],
    ['/_sluice/v1/refund', byApi, list(() => ({ ...ask(), decidedAt: now - whole(0, 20_000) }))],
    ['/_sluice/v1/refund', byApi, list(ask)],
    ['/_sluice/v1/auth', byApi],
    ['/_sluice/v1/auth', byApi],
    ['/_sluice/v1/policies', operate],
    [`${at}/peek`, operate, target()],
    [`${at}/reset`, operate, target()],
    [`${at}/ban`, operate, { ...target(), for: '30s' }],
    [`${at}/unban`, operate, target()],
    [`${at}/try`, operate, described],
    [`${at}/keys/u${whole(1, 4)}/limit`, operate, { limit: whole(1, 20), for: '1h' }, 'PUT'],
    [`${at}/keys/u${whole(1, 4)}/limit`, operate, undefined, pick('GET', 'DELETE')],
    [`${at}/keys`, operate],
    // Without `banList()` the list is a path of the app, unless a side has it by default.
    ...(use.some(([feature]) => feature === 'banList')
      ? [bans(''), bans(''), bans(`?after=${now}:x`)]
      : []),
    ['/_sluice/health', operate],
    ['/_sluice/quota', operate],
  )
  const { pathname, search, host } = new URL(url)
  const isAuth = path.endsWith('/auth')
  return {
    url: `https://app.example${path}`,
    method: verb ?? (content ? 'POST' : 'GET'),
    headers: {
      ...(isAuth && {
        ...headers,
        'x-forwarded-method': method,
        'x-forwarded-uri': `${pathname}${search}`,
        'x-forwarded-host': host,
        'x-forwarded-for': pick(...ADDRESSES),
      }),
      ...(isAuth ? { 'sluice-token': token } : { authorization: `Bearer ${token}` }),
      ...(chance(0.3) && { 'idempotency-key': `k${whole(1, 3)}` }),
    },
    ...(content ? { body: JSON.stringify(content) } : {}),
  } as Sent
}

const REPORT = 'https://app.example/_sluice/v1/verify'

/** The response of the origin. Its body takes a time, for which the request holds its slots. */
function originOf({ pick, chance, whole }: Draw, isHead: boolean) {
  const status = pick(200, 200, 200, 404, 500)
  const headers = {
    ...(chance(0.3) && { 'x-cost': `${whole(0, 5)}` }),
    ...(chance(0.2) && { 'access-control-allow-origin': '*' }),
    ...(chance(0.1) && { RateLimit: '"origin";r=1;t=5' }),
    'content-type': 'application/json',
  }
  const body = pick('ok', '{"usage":{"total":3,"in":2,"out":1}}', '{"usage":', '')
  const [headMs, bodyMs] = [pick(0, 0, 3), pick(0, 0, 0, 5, 700)]
  const wait = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms))
  return async () => {
    await wait(headMs)
    if (isHead) return new Response(null, { status, headers })
    const stream = new ReadableStream({
      async start(controller) {
        if (bodyMs > 0) await wait(bodyMs)
        controller.enqueue(new TextEncoder().encode(body))
        controller.close()
      },
    })
    return new Response(stream, { status, headers })
  }
}

function drawCase(draw: Draw, of: Drawn, at: number): Case {
  const { pick, chance, maybe } = draw
  const uses = (feature: string) => of.use.some(([name]) => name === feature)
  const hasApi = of.host === 'gateway' || uses('endpoints')
  const sent = chance(hasApi ? 0.3 : 0.02) ? apiCall(draw, of, at) : drawn(draw)
  if (chance(uses('verify') ? 0.3 : 0.02)) {
    Object.assign(sent.headers, { 'sluice-verify': verifyField(draw, of, at) })
    if (chance(0.1)) Object.assign(sent, { url: REPORT, method: 'GET', body: undefined })
  }
  return {
    at,
    isolate: 0,
    text: JSON.stringify(sent),
    cf: {
      country: pick('DE', 'FR', 'US', undefined),
      asn: pick(64500, 64501),
      colo: pick('FRA', 'CDG'),
      botManagement: {
        score: pick(1, 20, 60),
        verifiedBot: chance(0.2),
        ja4: pick('t13d1', 't12x'),
      },
    },
    address: pick(...ADDRESSES),
    leaves: maybe(0.05, () => pick(1, 300, 5_000)),
    response: originOf(draw, sent.method === 'HEAD'),
  }
}

/** Random requests in the order of their arrival. Some arrive together. */
export function drawCases(draw: Draw, of: Drawn, count: number, start: number): Case[] {
  let at = start
  const cases: Case[] = []
  // Requests of a configuration are alike, so that they meet in a quota.
  const few = Array.from({ length: draw.whole(3, 12) }, () => drawCase(draw, of, start))
  while (cases.length < count) {
    at += draw.pick(0, 0, 0, 1, 7, 7, 400, 1_500, 9_000, 61_000)
    const isNew = draw.chance(0.4)
    const isolate = draw.pick(0, 1)
    cases.push({ ...(isNew ? drawCase(draw, of, at) : draw.pick(...few)), at, isolate })
  }
  return cases
}

/** Random times without Redis. */
export function drawOutages({ pick, chance, whole }: Draw, cases: readonly Case[]): Outage[] {
  const outages: Outage[] = []
  while (chance(0.4) && outages.length < 3) {
    const from = pick(...cases).at - 1
    const fault = pick<Fault>('down', 'lost', 'page', 'slow', 'stopped')
    outages.push({ from, to: from + pick(1, 5, 500, 2_000, whole(1, 70_000)), fault })
  }
  return outages
}
