import { Agent, request } from 'node:http'
import fc from 'fast-check'
import { createClient } from 'redis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { canonical } from '../../src/core/base/part.ts'
import type { KeySource, PolicyOptions } from '../../src/core/config/options.ts'
import { hashedSubjects } from '../../src/core/decide/subject.ts'
import type { Stack } from '../../tools/stack.ts'
import { anyCharacter } from '../support/any-text.ts'
import { createMatcher } from '../support/create-matcher.ts'
import { isLong } from '../support/long.ts'
import { startStack } from '../support/stack.ts'

const REQUESTS = isLong ? 10_000 : 500

/** Every key source. Each is the key of a policy that applies to every request. */
const sources: KeySource[] = [
  'ip',
  'path',
  'method',
  'host',
  'country',
  'asn',
  'colo',
  'api-key',
  'global',
  'header:x-key',
  'cookie:sid',
  'query:q',
  'jwt:sub',
]
const quota = { limit: 1_000_000, window: '1h' } as const
const policies: PolicyOptions[] = [
  ...sources.map((key, index) => ({ name: `p${index}`, key, ...quota })),
  { name: 'user', key: 'path:id', match: { path: '/users/:id' }, ...quota },
  { name: 'login', match: { path: '/login' }, ...quota },
]
const config = { policies, jwt: { secret: 'JWT_SECRET' }, deny: { header: { 'x-deny': '*evil*' } } }
const env = { JWT_SECRET: 'a secret of at least thirty-two bytes' }

const nasty = fc.constantFrom(
  '__proto__',
  'constructor',
  'hasOwnProperty',
  '"],["ip","203.0.113.7',
  '\\',
  '*',
  '\u0000',
  'null',
  '{}',
  '../..',
  'a'.repeat(4000),
)
const text = fc.oneof(nasty, fc.string({ unit: anyCharacter, maxLength: 40 }), fc.string())
/** A field value that Node accepts: bytes without control characters. */
const value = text.map((text) => text.replace(/[^\t\x20-\x7e\x80-\xff]/g, '').trim())
const escaped = fc.oneof(
  text.map((text) => encodeURIComponent(text.toWellFormed())),
  fc.constantFrom('%', '%zz', '%ff', '%00', '%c3%28', '%2e%2e%2f', ';x=1', '+', '%25'),
)

/** A spelling of /login. */
const login = fc
  .tuple(
    fc.constantFrom('/', '//', '/./', '/x/../', '/%2e/', '/a/b/%2E%2e/../', '/;v=1/', '/\\'),
    fc.array(fc.boolean(), { minLength: 5, maxLength: 5 }),
    fc.array(fc.boolean(), { minLength: 5, maxLength: 5 }),
    fc.constantFrom('', '/', '//', '/.', ';jsessionid=1', '/x/..', '%2f', '?', '?q=1'),
  )
  .map(([before, hex, upper, after]) => {
    const letters = [...'login'].map((letter, index) => {
      const cased = upper[index] ? letter.toUpperCase() : letter
      return hex[index] ? `%${cased.charCodeAt(0).toString(16)}` : cased
    })
    return before + letters.join('') + after
  })

const anyRequest = fc.record(
  {
    login,
    path: fc.array(escaped, { maxLength: 4 }).map((parts) => `/${parts.join('/')}`),
    query: fc.array(fc.tuple(fc.constantFrom('q', 'Q', 'q[]', ''), escaped), { maxLength: 3 }),
    method: fc.constantFrom('GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'HEAD'),
    ip: fc.oneof(fc.ipV4(), fc.ipV6(), value),
    key: value,
    cookie: fc.oneof(
      value,
      value.map((value) => `sid=${value}`),
    ),
    authorization: fc.oneof(
      value,
      value.map((value) => `Bearer ${value}`),
    ),
    apiKey: value,
  },
  { requiredKeys: ['path', 'method'] },
)
type AnyRequest = typeof anyRequest extends fc.Arbitrary<infer T> ? T : never

/** The request as options of `http.request`. */
function toHttpOptions({
  login,
  path,
  query,
  method,
  ip,
  key,
  cookie,
  authorization,
  apiKey,
}: AnyRequest) {
  const search = query?.map((pair) => pair.join('=')).join('&')
  const target = login ?? path
  const fields = {
    'cf-connecting-ip': ip,
    'x-key': key,
    cookie,
    authorization,
    'x-api-key': apiKey,
  }
  return {
    method,
    path: search && !target.includes('?') ? `${target}?${search}` : target,
    headers: Object.fromEntries(
      Object.entries(fields).filter((field): field is [string, string] => field[1] !== undefined),
    ),
  }
}

describe('hostile requests', () => {
  let stack: Stack
  const agent = new Agent({ keepAlive: true, maxSockets: 16 })
  beforeAll(async () => {
    stack = await startStack({ config, env })
  })
  afterAll(async () => {
    agent.destroy()
    await stack.stop()
  })

  const send = (options: ReturnType<typeof toHttpOptions>) =>
    new Promise<{ status: number; policies: string }>((resolve, reject) => {
      const { port } = new URL(stack.worker.directUrl)
      request({ host: '127.0.0.1', port, agent, ...options }, (response) => {
        response.resume().on('end', () =>
          resolve({
            status: response.statusCode!,
            policies: String(response.headers['ratelimit-policy']),
          }),
        )
      })
        .on('error', reject)
        .end()
    })

  test('Of many hostile requests none causes a 5xx, evades its policy, or creates a malformed key.', async () => {
    const requests = fc.sample(anyRequest, REQUESTS)
    const queue = requests.values()
    const wrong: unknown[] = []
    const worker = async () => {
      for (const one of queue) {
        const options = toHttpOptions(one)
        const { status, policies } = await send(options)
        const evaded = one.login !== undefined && !policies.includes('"login"')
        if (status !== 200 || evaded) wrong.push({ status, policies, ...options })
      }
    }
    await Promise.all(Array.from({ length: 16 }, worker))
    expect(wrong.slice(0, 5)).toEqual([])

    const redis = await createClient({ url: stack.redis.url }).connect()
    const keys = await redis.keys('*')
    redis.destroy()
    expect(keys.length).toBeGreaterThan(REQUESTS / 10)
    expect(keys.filter((key) => !/^sluice:1:\{[\w-]{16}\}$/.test(key))).toEqual([])
  }, 300_000)
})

test('Random requests have as many subjects as partition keys, so no two keys collide.', async () => {
  const match = createMatcher({
    policies: [
      { name: 'pair', key: ['header:x-key', 'query:q'], ...quota },
      { name: 'triple', key: ['cookie:sid', 'path', 'api-key'], ...quota },
      ...policies.slice(0, 3),
    ],
  })
  const nameSubject = hashedSubjects('secret')
  const subjects = new Map<string, string>()
  const keys = new Set<string>()
  for (const one of fc.sample(anyRequest, REQUESTS)) {
    const { path, ...init } = toHttpOptions(one)
    const { policies } = await match(`https://www.example.com${path}`, init)
    for (const { partitionKey } of policies) {
      const key = canonical(partitionKey)
      const subject = await nameSubject(partitionKey)
      keys.add(key)
      expect(subjects.get(subject) ?? key).toBe(key)
      subjects.set(subject, key)
    }
  }
  expect(subjects.size).toBe(keys.size)
  expect(keys.size).toBeGreaterThan(REQUESTS / 2)
}, 60_000)
