/** Hostile calls with a valid token to the Worker in workerd. Each gets an answer, and none causes an internal error. */
import { Agent, request } from 'node:http'
import { connect } from 'node:net'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { anyCharacter, anyUrl } from '../../support/any-text.ts'
import { API_TOKEN, type Api, OPERATE, startApi } from '../../support/api-stack.ts'
import { isLong } from '../../support/long.ts'

const CALLS = isLong ? 10_000 : 600

let api: Api
beforeAll(async () => {
  const quota = { limit: 100, window: '1h' } as const
  api = await startApi({
    jwt: { secret: 'JWT_SECRET' },
    deny: { header: { 'x-deny': true } },
    policies: [
      { ...quota, name: 'a', penalty: { after: 2, within: '1m', ban: '1s' } },
      { ...quota, name: 'b', key: ['path', 'header:x-key', 'jwt:sub'], algorithm: 'sliding-log' },
      { ...quota, name: 'c', key: 'path:id', match: { path: '/users/:id' }, algorithm: 'gcra' },
      {
        ...quota,
        name: 'd',
        window: '1s',
        algorithm: 'concurrency',
        key: 'global',
        match: { method: 'POST' },
      },
      {
        ...quota,
        name: 'e',
        window: 'month',
        algorithm: 'fixed-window',
        plan: 'header:x-plan',
        limits: { pro: 9 },
      },
    ],
  })
})
afterAll(() => api?.stop())

const nasty = fc.constantFrom(
  '__proto__',
  'constructor',
  'toString',
  '',
  '*',
  '\u0000',
  '\ud800',
  '1e400',
  '-0',
  '𝒳'.repeat(600),
  'a'.repeat(2000),
)
const text = fc.oneof(nasty, fc.string({ unit: anyCharacter, maxLength: 30 }), fc.string())
const number = fc.oneof(
  fc.double(),
  fc.integer(),
  fc.constantFrom(-0, 2 ** 51, 2 ** 53, 1e308, Number.MIN_VALUE),
)
const junk = fc.oneof(
  { maxDepth: 3 },
  text,
  number,
  fc.constantFrom(null, true, [], {}),
  fc.array(text, { maxLength: 20 }),
  fc.dictionary(text, fc.oneof(text, number), { maxKeys: 5 }),
)
/** Mostly valid, so that many calls pass the first checks. */
const or = <T>(usual: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 6, arbitrary: usual as fc.Arbitrary<unknown> }, { weight: 1, arbitrary: junk })
const names = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'z')
const url = fc.oneof(
  anyUrl({ withFragments: true }),
  text.map((text) => `https://a.example/${text}`),
  text,
)
const described = fc.record(
  {
    method: or(fc.constantFrom('GET', 'POST', 'TRACE', 'get', 'QUERY')),
    url: or(url),
    ip: or(fc.oneof(fc.ipV4(), fc.ipV6())),
    headers: or(
      fc.dictionary(
        fc.oneof(
          fc.constantFrom(
            'x-key',
            'authorization',
            'cookie',
            'host',
            'x-plan',
            'sluice-token',
            'connection',
          ),
          text,
        ),
        text,
        { maxKeys: 4 },
      ),
    ),
    country: or(fc.constantFrom('DE', 'xx')),
    asn: or(fc.integer({ min: 1, max: 99999 })),
    colo: or(fc.constant('FRA')),
  },
  { requiredKeys: ['url'] },
)
const ask = fc.record(
  {
    policy: or(names),
    request: or(described),
    key: or(fc.oneof(text, fc.array(fc.oneof(text, number, fc.constant(null)), { maxLength: 4 }))),
    plan: or(fc.constantFrom('pro', 'free')),
    cost: or(fc.integer({ min: 0, max: 9 })),
    mode: or(fc.constantFrom('take', 'peek')),
    decidedAt: or(fc.nat()),
    slot: or(fc.constant('slot-1')),
    for: or(fc.constantFrom('1s', 7)),
  },
  { requiredKeys: [] },
)
/** Only fields that belong together, so that many calls are valid. */
const usual = fc.oneof(
  fc.record({ request: described, mode: fc.constantFrom('take', 'peek') }),
  fc.record({
    policy: names,
    key: fc.oneof(
      text,
      fc.ipV4(),
      fc.array(fc.oneof(text, fc.constant(null)), { minLength: 1, maxLength: 3 }),
    ),
  }),
  fc.record({ key: fc.oneof(fc.ipV4(), text) }),
  fc.record({ subject: fc.stringMatching(/^[\w-]{15,16}$/) }),
  fc.record({ key: fc.ipV4(), for: fc.constantFrom('1s', '1d', 5) }),
  fc.record({ request: described }),
)
const one = fc.oneof(
  { weight: 3, arbitrary: usual as fc.Arbitrary<unknown> },
  { weight: 2, arbitrary: ask },
  { weight: 1, arbitrary: junk },
)
const body = fc.oneof(
  { weight: 6, arbitrary: one.map((value) => JSON.stringify(value) ?? '') },
  { weight: 2, arbitrary: fc.array(one, { maxLength: 12 }).map((value) => JSON.stringify(value)) },
  { weight: 1, arbitrary: text },
)
const path = fc.oneof(
  fc.constantFrom(
    '/decide',
    '/decide',
    '/refund',
    '/settle',
    '/auth',
    '/auth/nginx',
    '/auth/envoy/',
    '/policies',
    '/openapi.json',
  ),
  fc
    .tuple(names, fc.constantFrom('peek', 'reset', 'ban', 'unban', 'try', 'grow'))
    .map((parts) => `/policies/${parts.join('/')}`),
  text.map((text) => `/policies/${encodeURIComponent(text.toWellFormed())}/peek`),
  text.map((text) => `/auth/envoy/${encodeURIComponent(text.toWellFormed())}`),
)
/** A field value that Node accepts: bytes without control characters. */
const value = fc
  .oneof(
    text,
    url,
    fc.constantFrom('/', '*', 'POST', 'a.example', '203.0.113.1, 203.0.113.2', '"k"'),
  )
  .map((text) => text.replace(/[^\t\x20-\x7e\x80-\xff]/g, '').trim())
const fields = fc.dictionary(
  fc.constantFrom(
    'Idempotency-Key',
    'X-Forwarded-For',
    'X-Forwarded-Uri',
    'X-Forwarded-Method',
    'X-Forwarded-Host',
    'X-Forwarded-Proto',
    'CF-Connecting-IP',
    'X-Key',
    'Authorization',
    'Cookie',
    'Content-Type',
    'Origin',
    'X-Plan',
    'X-Deny',
  ),
  value,
  { maxKeys: 6 },
)
const call = fc.record({ path, body, fields, wrong: fc.nat({ max: 9 }) })

const agent = new Agent({ keepAlive: true, maxSockets: 16 })
afterAll(() => agent.destroy())

function send({
  path,
  body,
  fields,
  wrong,
}: {
  path: string
  body: string
  fields: Record<string, string>
  wrong: number
}) {
  const { hostname, port } = new URL(api.stack.worker.directUrl)
  const operates = path.startsWith('/policies') === wrong > 0
  const token = operates ? OPERATE : API_TOKEN
  const sentFields = /^\/auth/.test(path)
    ? { 'X-Forwarded-Method': 'GET', 'X-Forwarded-Uri': '/', ...fields }
    : fields
  const method = path === '/policies' || path === '/openapi.json' ? 'GET' : 'POST'
  return new Promise<{ status: number; type: string; text: string }>((resolve, reject) => {
    const sent = request(
      {
        agent,
        hostname,
        port,
        path: `/_sluice/v1${path}`,
        method,
        headers: { Host: 'api.example', ...sentFields, 'Sluice-Token': token },
      },
      (answer) => {
        let text = ''
        answer.setEncoding('utf8')
        answer.on('data', (chunk) => (text += chunk))
        answer.on('end', () =>
          resolve({ status: answer.statusCode!, type: answer.headers['content-type'] ?? '', text }),
        )
        answer.on('error', reject)
      },
    )
    sent.on('error', reject)
    sent.end(method === 'POST' ? body : undefined)
  })
}

test('Hostile calls get no 5xx, every error is a problem document, and the decision API still works.', async () => {
  const statuses: Record<number, number> = {}
  const one = async (input: Parameters<typeof send>[0]) => {
    const { status, type, text } = await send(input)
    statuses[status] = (statuses[status] ?? 0) + 1
    const about = JSON.stringify({ status, text, input }).slice(0, 2000)
    expect(status, about).toBeLessThan(500)
    expect(status, about).toBeGreaterThanOrEqual(200)
    if (input.path === '/auth/nginx' && status === 403 && text === '') {
      expect(type, about).toBe('')
    } else if (status >= 400 && !(status === 429 && input.path === '/decide')) {
      expect(type, about).toBe('application/problem+json')
      const problem = JSON.parse(text)
      expect(problem, about).toMatchObject({ title: expect.any(String) })
      expect(text.length, about).toBeLessThan(8192)
    }
    for (const secret of [API_TOKEN, OPERATE]) expect(text, about).not.toContain(secret)
  }
  const calls = fc.sample(call, { numRuns: CALLS, seed: Number(process.env.SEED ?? Date.now()) })
  for (let start = 0; start < calls.length; start += 16) {
    await Promise.all(calls.slice(start, start + 16).map(one))
  }
  // Many calls reached a decision, and many failed validation.
  expect(statuses[200], JSON.stringify(statuses)).toBeGreaterThan(CALLS / 20)
  expect(statuses[422], JSON.stringify(statuses)).toBeGreaterThan(CALLS / 10)
  const logs = api.stack.worker.logs.join('\n')
  expect(logs).not.toMatch(/"event":"error"|"code":"(redis-error|bad-reply|internal)"/)
  expect((await api.decide({ policy: 'a', key: '198.18.0.1' })).status).toBe(200)
}, 120_000)

test('A body that never ends is refused.', async () => {
  const { hostname, port } = new URL(api.stack.worker.directUrl)
  const socket = connect(Number(port), hostname)
  let answer = ''
  socket.on('data', (data) => (answer += data))
  socket.on('error', () => {})
  socket.write(
    `POST /_sluice/v1/decide HTTP/1.1\r\nHost: a\r\nSluice-Token: ${API_TOKEN}\r\nTransfer-Encoding: chunked\r\n\r\n`,
  )
  const chunk = `4000\r\n${'a'.repeat(0x4000)}\r\n`
  for (let sent = 0; sent < 500 && !answer; sent++) {
    socket.write(chunk)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  socket.destroy()
  expect(answer.slice(0, 13)).toBe('HTTP/1.1 413 ')
})
