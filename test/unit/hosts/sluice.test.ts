import { expect, test } from 'vitest'
import { ConfigError } from '../../../src/core/base/errors.ts'
import type { ConfigOptions } from '../../../src/core/config/options.ts'
import { createSluice } from '../../../src/hosts/app/sluice.ts'
import { useDatabase } from '../../support/database.ts'
import { concurrency } from '../../support/features.ts'

const { env } = useDatabase()

let namespaces = 0

/** A limiter with counters of its own, and a function that checks a request from an address. */
function limiter(namespace: string, policy: Partial<ConfigOptions['policies'][number]> = {}) {
  const sluice = createSluice({
    namespace: `${namespace}-${++namespaces}`,
    clientAddress: 'socket',
    deadline: '5s',
    policies: [{ name: 'a', limit: 2, window: '1h', ...policy }],
    use: [concurrency()],
  })
  return (
    request: Request = new Request('http://localhost/'),
    remoteAddress = '192.0.2.1',
    waitUntil?: (promise: Promise<unknown>) => void,
  ) => sluice.check(request, { env, remoteAddress, waitUntil })
}

test('A request within the limit is allowed, and its headers report what remains.', async () => {
  const { allowed, response, headers, decision, finish } = await limiter('within')()
  expect([allowed, response, decision.reason]).toEqual([true, undefined, 'within-limit'])
  expect(headers.get('ratelimit')).toMatch(/^"a";r=1;t=\d+$/)
  const finished = finish(new Response('hello', { headers: { 'x-own': 'kept' } }))
  expect(finished.headers.get('ratelimit')).toBe(headers.get('ratelimit'))
  expect([finished.headers.get('x-own'), await finished.text()]).toEqual(['kept', 'hello'])
})

test('A request beyond the limit has a complete response, and another address is not affected.', async () => {
  const check = limiter('beyond')
  for (const _ of [1, 2]) expect((await check()).allowed).toBe(true)
  const { allowed, response } = await check()
  expect([allowed, response?.status]).toEqual([false, 429])
  expect(Number(response!.headers.get('retry-after'))).toBeGreaterThan(0)
  expect(response!.headers.get('ratelimit')).toMatch(/^"a";r=0;t=\d+$/)
  expect(await response!.json()).toMatchObject({ status: 429, 'violated-policies': ['a'] })
  expect((await check(undefined, '192.0.2.2')).allowed).toBe(true)
})

test('The response that finish gets decides what counts.', async () => {
  const check = limiter('outcomes', { countOnly: '4xx' })
  const checkThenSettle = async (status: number) => {
    const refunds: Promise<unknown>[] = []
    const checked = await check(undefined, undefined, (refund) => refunds.push(refund))
    if (status === 200) checked.finish(new Response('ok'))
    else checked.settle({ status, headers: new Headers() })
    await Promise.all(refunds)
    return checked.allowed
  }
  for (const _ of [1, 2, 3]) expect(await checkThenSettle(200)).toBe(true)
  for (const _ of [1, 2]) expect(await checkThenSettle(401)).toBe(true)
  expect(await checkThenSettle(200)).toBe(false)
})

test('Finishing a request twice refunds it once.', async () => {
  const check = limiter('twice', { countOnly: '4xx', limit: 9 })
  for (const _ of [1, 2, 3]) await check()
  const work: Promise<unknown>[] = []
  const { finish, settle } = await check(undefined, undefined, (promise) => work.push(promise))
  for (const _ of [1, 2]) finish(new Response('ok'))
  settle({ status: 200, headers: new Headers() })
  await Promise.all(work)
  expect((await check()).headers.get('ratelimit')).toMatch(/r=5/)
})

test.each([
  ['An upgrade', Object.defineProperty(new Response(null), 'status', { value: 101 })],
  ['A network error', Response.error()],
])('%s is returned without fields, because it cannot be copied.', async (_name, response) => {
  const request = new Request('http://localhost/')
  const { finish } = await limiter('copied')(request)
  Object.defineProperty(request, 'headers', {
    get() {
      throw new TypeError('Request closed') // as in Deno after an upgrade
    },
  })
  expect(finish(response)).toBe(response)
})

test('A slot is released when the body of the finished response has ended.', async () => {
  const check = limiter('slots', { algorithm: 'concurrency', limit: 1, onStoreError: 'deny' })
  const { readable, writable } = new TransformStream<Uint8Array>()
  const response = (await check()).finish(new Response(readable))
  expect((await check()).allowed).toBe(false)
  const text = response.text()
  await writable.close()
  await text
  await expect.poll(async () => (await check()).allowed).toBe(true)
})

test('A slot is released by settle, for a server without a Response.', async () => {
  const check = limiter('settled', { algorithm: 'concurrency', limit: 1, onStoreError: 'deny' })
  const { settle } = await check()
  expect((await check()).allowed).toBe(false)
  settle({ status: 200, headers: new Headers() })
  await expect.poll(async () => (await check()).allowed).toBe(true)
})

test('A key function gets the request, or the context that the caller passes.', async () => {
  const sluice = createSluice<{ user: string }>({
    namespace: `context-${++namespaces}`,
    deadline: '5s',
    policies: [{ name: 'a', limit: 5, window: '1h', key: ({ user }) => user }],
  })
  const request = new Request('http://localhost/')
  for (const [user, left] of [
    ['ada', 4],
    ['bob', 4],
    ['ada', 3],
  ] as const) {
    const { headers } = await sluice.check(request, { env, context: { user } })
    expect(headers.get('ratelimit')).toContain(`r=${left}`)
  }
})

test('Without clientAddress, a policy by address fails outside of Cloudflare, and one by API key works.', async () => {
  const byAddress = createSluice({ policies: [{ name: 'a', limit: 2, window: '1h' }] })
  const request = new Request('http://localhost/', { headers: { 'x-api-key': 'key' } })
  await expect(byAddress.check(request, { env })).rejects.toThrow(ConfigError)
  const byKey = createSluice({
    namespace: 'by-key',
    policies: [{ name: 'a', limit: 2, window: '1h', key: 'api-key' }],
  })
  expect((await byKey.check(request, { env })).allowed).toBe(true)
})

test('A waitUntil of null, as JavaScript may pass it, is none.', async () => {
  const sluice = createSluice({
    namespace: `null-${++namespaces}`,
    deadline: '5s',
    clientAddress: 'socket',
    policies: [{ name: 'a', limit: 2, window: '1h', countOnly: '4xx' }],
  })
  const options = { env, waitUntil: null as never, remoteAddress: '192.0.2.1' }
  const { finish } = await sluice.check(new Request('http://localhost/'), options)
  expect(finish(new Response()).status).toBe(200)
})

test('Without an environment, the variables of the process are used.', async () => {
  Object.assign(process.env, env)
  try {
    const sluice = createSluice({
      namespace: `process-${++namespaces}`,
      deadline: '5s',
      clientAddress: 'socket',
      policies: [{ name: 'a', limit: 2, window: '1h' }],
    })
    const request = new Request('http://localhost/')
    const { decision } = await sluice.check(request, { remoteAddress: '192.0.2.1' })
    expect(decision.reason).toBe('within-limit')
  } finally {
    for (const name of Object.keys(env)) delete process.env[name]
  }
})
