/** Who is banned now: the list of bans, and that no decision depends on it. */
import { createClient as connectRedis } from 'redis'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createClient } from '../../../src/client/client.ts'
import type { BanPage } from '../../../src/features/bans/endpoint.ts'
import { editBans, readBans } from '../../../src/features/bans/list.ts'
import { cluster } from '../../../src/features/cluster/index.ts'
import type { Stats } from '../../../src/features/observe/report.ts'
import { ANSWER, FIELD, signed } from '../../../src/features/verify/field.ts'
import { createGateway } from '../../../src/index.ts'
import { durableObjects } from '../../../src/stores/durable-objects/index.ts'
import { TestClock } from '../../../src/testing/clock.ts'
import type { JsonConfig } from '../../../tools/any-config.ts'
import { apiOf, apiTokens, OPERATE } from '../../support/api-stack.ts'
import { useGateway } from '../../support/gateway.ts'

const HOUR = 3_600_000
const penalty = { after: 2, within: '10m', ban: '1h', max: '1d', list: true } as const
/** A key whose readable subjects have more than 1000 characters. */
const WIDE = Array.from({ length: 10 }, (_, n) => `header:x-${'long-'.repeat(10)}${n}` as const)
const config: JsonConfig = {
  deadline: '10s',
  policies: [
    { name: 'login', limit: 1, window: '10m', penalty, match: { path: '/login' } },
    { name: 'manual', limit: 9, window: '1m', penalty: 'manual', match: { path: '/manual' } },
    {
      name: 'quiet',
      limit: 9,
      window: '1m',
      penalty: { after: 2, within: '10m', ban: '1h' },
      match: { path: '/quiet' },
    },
    { name: 'plain', limit: 9, window: '1m', match: { path: '/plain' } },
    {
      name: 'wide',
      limit: 9,
      window: '1m',
      penalty: 'manual',
      key: WIDE,
      match: { path: '/wide' },
    },
  ],
}

/** A clock that moves only when a test moves it. */
class StillClock extends TestClock {
  override now = () => Date.UTC(2026, 0, 5) + this.offsetMs
}
const clock = new StillClock()
const env = {
  ...apiTokens,
  SLUICE_SECRET: 'a secret',
  SLUICE_VERIFY_TOKEN: 'a-token-to-verify-with',
}
const gateway = useGateway({ config, clock, observe: {}, env })
type Isolate = Pick<typeof gateway, 'fetch' | 'settled'>

let redis: ReturnType<typeof connectRedis>
beforeAll(async () => {
  redis = connectRedis({ url: gateway.redis.url })
  await redis.connect()
})
afterAll(() => redis.destroy())
beforeEach(() => redis.flushAll())

let clients = 0
const newIp = () => `198.51.${Math.floor(++clients / 250)}.${clients % 250}`

/** Sends the three requests after which a client is banned. */
async function offend(ip: string, { fetch, settled }: Isolate = gateway) {
  for (const status of [200, 429, 429]) expect((await fetch('/login', { ip })).status).toBe(status)
  await settled()
}

const operate = async (
  name: string,
  operation: string,
  body: object,
  isolate: Isolate = gateway,
) => {
  const answer = await apiOf(isolate.fetch).operate(name, operation, body)
  expect(answer.status).toBe(200)
  await isolate.settled()
}

/** Bans new clients, ten at a time. */
async function banMany(count: number, lengthOf: (n: number) => string) {
  for (let first = 0; first < count; first += 10) {
    const some = Array.from({ length: Math.min(10, count - first) }, (_, n) => first + n)
    await Promise.all(some.map((n) => operate('manual', 'ban', { key: newIp(), for: lengthOf(n) })))
  }
}

async function list(name = 'login', after?: string, isolate: Isolate = gateway) {
  const query = after === undefined ? '' : `?after=${encodeURIComponent(after)}`
  const path = `/policies/${name}/bans${query}`
  const answer = await apiOf(isolate.fetch).call<BanPage>(path, undefined, { token: OPERATE })
  await isolate.settled()
  return answer
}
const pageOf = async (...given: Parameters<typeof list>) => {
  const { status, body } = await list(...given)
  expect(status).toBe(200)
  return body
}
const key = async () => (await redis.keys('*:bans'))[0]!

describe('the list', () => {
  test('A ban is listed with its rest, by a subject that unbans it.', async () => {
    const ip = newIp()
    await offend(ip)
    clock.advance(60_000)
    const page = await pageOf()
    expect(page).toEqual({
      bans: [{ subject: expect.stringMatching(/^[\w-]{16}$/), bannedForMs: HOUR - 60_000 }],
      total: 1,
    })
    await operate('login', 'unban', { subject: page.bans[0]!.subject })
    expect(await pageOf()).toEqual({ bans: [], total: 0 })
    await operate('login', 'reset', { key: ip })
    expect((await gateway.fetch('/login', { ip })).status).toBe(200)
  })

  test('A refusal that starts no ban is not listed, and neither is an admitted request.', async () => {
    const ip = newIp()
    for (let n = 0; n < 2; n++) await gateway.fetch('/login', { ip })
    await gateway.settled()
    expect(await pageOf()).toEqual({ bans: [], total: 0 })
    expect(await redis.keys('*:bans')).toEqual([])
  })

  test('The bans of operators are listed, without a field. A new length replaces the old one, and a reset removes the ban.', async () => {
    const ip = newIp()
    await operate('manual', 'ban', { key: ip, for: '2h' })
    expect((await pageOf('manual')).bans).toMatchObject([{ bannedForMs: 2 * HOUR }])
    await operate('manual', 'ban', { key: ip, for: '10m' })
    expect(await pageOf('manual')).toMatchObject({ bans: [{ bannedForMs: 600_000 }], total: 1 })
    await operate('manual', 'reset', { key: ip })
    expect(await pageOf('manual')).toEqual({ bans: [], total: 0 })
  })

  test('The ban that ends last is the first, and a ban that has ended is not listed.', async () => {
    const ips = [newIp(), newIp(), newIp()]
    const lengths = ['10m', '3h', '1h']
    for (const [n, ip] of ips.entries())
      await operate('manual', 'ban', { key: ip, for: lengths[n] })
    const rests = async () => (await pageOf('manual')).bans.map(({ bannedForMs }) => bannedForMs)
    expect(await rests()).toEqual([3 * HOUR, HOUR, 600_000])
    clock.advance(600_000)
    expect(await rests()).toEqual([3 * HOUR - 600_000, HOUR - 600_000])
    expect(await redis.zCard(await key())).toBe(2)
  })

  test('250 bans are three pages, each ban once, also if some end at the same time, and if bans are lifted meanwhile.', async () => {
    await banMany(250, (n) => (n < 120 ? '1h' : `${n}m`))
    const subjects: string[] = []
    const totals: number[] = []
    let next: string | undefined
    do {
      const page = await pageOf('manual', next)
      subjects.push(...page.bans.map(({ subject }) => subject))
      totals.push(page.total)
      next = page.next
    } while (next)
    expect(totals).toEqual([250, 250, 250])
    expect(new Set(subjects).size).toBe(250)
    expect(subjects).toHaveLength(250)
    const { next: second } = await pageOf('manual')
    for (const subject of subjects.slice(95, 105)) await operate('manual', 'unban', { subject })
    expect((await pageOf('manual', second)).bans.map(({ subject }) => subject)).toEqual(
      subjects.slice(105, 205),
    )
  })

  test('A ban by requests of `sluice verify` is not listed.', async () => {
    for (let count = 0; count < 3; count++) {
      const claim = { nonce: 'a-nonce-of-a-test', count, at: clock.now(), policy: 'login' }
      const headers = { [FIELD]: await signed(claim, env.SLUICE_VERIFY_TOKEN) }
      const answer = await gateway.fetch('/login', { ip: '192.0.2.1', headers })
      const { reason } = JSON.parse(answer.headers.get(ANSWER)!)
      expect(reason).toBe(['within-limit', 'limited', 'banned'][count])
    }
    await gateway.settled()
    expect(await redis.keys('*:bans')).toEqual([])
  })

  test('A page of exactly 100 bans has no next one.', async () => {
    await banMany(100, () => '1h')
    const page = await pageOf('manual')
    expect(page.bans).toHaveLength(100)
    expect(page.next).toBeUndefined()
  })

  test('The list keeps the 10,000 bans that end last.', async () => {
    await operate('manual', 'ban', { key: newIp(), for: '1h' })
    const now = clock.now()
    const members = Array.from({ length: 10_000 }, (_, n) => ({
      score: now + HOUR + 1 + n,
      value: `subject-${n}`,
    }))
    await redis.zAdd(await key(), members)
    await operate('manual', 'ban', { key: newIp(), for: '2h' })
    expect(await redis.zCard(await key())).toBe(10_000)
    expect((await redis.zRange(await key(), 0, 0))[0]).toBe('subject-1')
  })

  test('Its key expires a minute after the last ban, and has no values of keys.', async () => {
    const ip = newIp()
    await operate('manual', 'ban', { key: ip, for: '1h' })
    await operate('manual', 'ban', { key: newIp(), for: '10m' })
    const ttl = await redis.pTTL(await key())
    expect(ttl).toBeGreaterThan(HOUR)
    expect(ttl).toBeLessThanOrEqual(HOUR + 60_000)
    expect((await redis.zRange(await key(), 0, -1)).join()).not.toContain(ip)
  })
})

// A reader also removes what it finds lifted, so these tests look into the set before the first one.
describe('the set, without a reader', () => {
  test.each(['unban', 'reset'])(
    'A ban leaves it by %s, and the last one leaves no set.',
    async (operation) => {
      const ips = [newIp(), newIp()]
      for (const ip of ips) await operate('manual', 'ban', { key: ip, for: '1h' })
      const name = await key()
      await operate('manual', operation, { key: ips[0]! })
      expect(await redis.zCard(name)).toBe(1)
      await operate('manual', operation, { key: ips[1]! })
      expect(await redis.exists(name)).toBe(0)
    },
  )

  test('A new ban removes those that have ended.', async () => {
    await operate('manual', 'ban', { key: newIp(), for: '10m' })
    clock.advance(600_000)
    await operate('manual', 'ban', { key: newIp(), for: '10m' })
    expect(await redis.zCard(await key())).toBe(1)
  })

  test('A policy whose penalty has no list has none.', async () => {
    await operate('quiet', 'ban', { key: newIp(), for: '1h' })
    expect(await redis.keys('*:bans')).toEqual([])
  })
})

describe('the records decide', () => {
  test('A ban that another deployment has lifted is not listed, and leaves the list.', async () => {
    const ip = newIp()
    await offend(ip)
    const unlisted = config.policies.map((policy) =>
      policy.name === 'login' ? { ...policy, penalty: { ...penalty, list: false } } : policy,
    )
    const other = gateway.start({ ...config, policies: unlisted, use: [] }, { env })
    await operate('login', 'unban', { key: ip }, other)
    expect(await redis.zCard(await key())).toBe(1)
    expect(await pageOf()).toEqual({ bans: [], total: 0 })
    expect(await redis.keys('*:bans')).toEqual([])
  })

  test('A reader that finds a ban lifted removes that ban, and none that began since.', async () => {
    const set = { tag: 'a-tag', namespace: 'shop' }
    const now = clock.now()
    const database = {
      url: gateway.env.UPSTASH_REDIS_REST_URL as string,
      token: gateway.env.UPSTASH_REDIS_REST_TOKEN as string,
    }
    const [lifted, again] = ['lifted', 'again'].map((subject) => ({ subject, end: now + 1000 }))
    await editBans(database, set, 'change', [lifted!, again!], now)
    await editBans(database, set, 'change', [{ ...again!, end: now + 2000 }], now)
    await editBans(database, set, 'forget', [lifted!, again!], now)
    const { bans } = await readBans(database, set, Number.POSITIVE_INFINITY, 9, now)
    expect(bans).toEqual([{ subject: 'again', end: now + 2000 }])
    expect(await redis.keys('*:bans')).toEqual(['sluice:1:shop:{a-tag}:bans'])
  })

  test('A lost ban is listed when another isolate refuses the client, and once only by each.', async () => {
    const ip = newIp()
    await offend(ip)
    await redis.del(await key())
    await gateway.fetch('/login', { ip })
    await gateway.settled()
    expect(await pageOf()).toMatchObject({ total: 0 })
    const other = gateway.start(config, { env })
    expect((await other.fetch('/login', { ip })).status).toBe(429)
    await other.settled()
    expect(await pageOf()).toMatchObject({ bans: [{ bannedForMs: HOUR }], total: 1 })
  })

  test('A list that cannot be written changes no decision, is logged, and is written with the next refusal.', async () => {
    const probe = newIp()
    await operate('manual', 'ban', { key: probe, for: '1h' })
    const name = await key()
    await redis.flushAll()
    await redis.set(name, 'no set')
    const ip = newIp()
    await operate('manual', 'ban', { key: ip, for: '1h' })
    expect((await gateway.fetch('/manual', { ip })).status).toBe(429)
    await gateway.settled()
    expect(gateway.events()).toContain('ban-not-listed')
    expect(gateway.logs.join()).not.toContain(ip)
    expect((await list('manual')).status).toBe(503)
    await redis.del(name)
    clock.advance(11_000) // beyond the denial cache
    expect((await gateway.fetch('/manual', { ip })).status).toBe(429)
    await gateway.settled()
    expect(await pageOf('manual')).toMatchObject({ total: 1 })
  })
})

describe('the endpoint', () => {
  test.each([
    ['of an unknown policy', 'nobody', 404, 'There is no policy with this name.'],
    ['of a policy without list', 'quiet', 409, 'are not listed. Set penalty.list: true, beside'],
    [
      'of a policy without bans',
      'plain',
      409,
      "has no bans. Set penalty, for example to 'manual'.",
    ],
  ])('The list %s is an error that says what to do.', async (_, name, status, detail) => {
    const answer = await list(name)
    expect(answer.status).toBe(status)
    expect((answer.body as unknown as { detail: string }).detail).toContain(detail)
  })

  test.each([
    ['manual', "With penalty: 'manual', set it in any policy."],
    ['plain', "has no bans. Set penalty, for example to 'manual'."],
  ])(
    'If no policy has a list, the list of the policy %s says what to do.',
    async (name, detail) => {
      const policies = config.policies.filter((policy) => policy.name !== 'login')
      const other = gateway.start({ ...config, policies }, { env })
      const { status, body } = await list(name, undefined, other)
      expect([status, body]).toMatchObject([409, { detail: expect.stringContaining(detail) }])
      expect((await apiOf(other.fetch).call(`/policies/${name}/bans`)).status).toBe(403)
    },
  )

  test('A parameter that is no place in the list gets 422.', async () => {
    const answer = await list('login', 'yesterday')
    expect(answer).toMatchObject({
      status: 422,
      body: {
        errors: [{ path: 'after', expected: '`next` of the answer before', got: '"yesterday"' }],
      },
    })
  })

  test('It needs the operate token and GET.', async () => {
    const api = apiOf(gateway.fetch)
    expect((await api.call('/policies/login/bans')).status).toBe(403)
    const wrong = await api.call('/policies/login/bans', {}, { token: OPERATE })
    expect([wrong.status, wrong.headers.get('allow')]).toEqual([405, 'GET'])
  })

  test('A policy that the configuration lacks has none.', async () => {
    const other = gateway.start({ ...config, policies: [] }, { env })
    expect((await list('login', undefined, other)).status).toBe(404)
  })

  test('The client reads a page.', async () => {
    const ip = newIp()
    await operate('manual', 'ban', { key: ip, for: '1h' })
    const client = createClient({
      url: 'https://limits.example.com',
      token: OPERATE,
      fetch: (url, init) =>
        gateway.fetch(new URL(url).pathname + new URL(url).search, init as object),
    })
    const page = await client.bans('manual')
    expect(page).toMatchObject({ bans: [{ bannedForMs: HOUR }], total: 1 })
    const { subject } = page.bans[0]!
    expect(await client.bans('manual', `${clock.now() + HOUR}:${subject}`)).toMatchObject({
      bans: [],
    })
  })
})

test('With cluster() the list works alike.', async () => {
  const isolate = gateway.start({ ...config, use: [cluster()] }, { env })
  for (const ip of [newIp(), newIp()]) await offend(ip, isolate)
  expect(await pageOf('login', undefined, isolate)).toMatchObject({ total: 2 })
})

describe('what it costs', () => {
  // With a clock of its own, the bridge sends the time.
  const gateway = useGateway({ config, observe: {}, env })
  const stats = async () =>
    (await apiOf(gateway.fetch).call<Stats>('/stats', undefined, { token: OPERATE })).body
  const commands = async () => {
    const { calls, billedCommands } = (await stats()).total.store
    return { http: calls, commands: billedCommands }
  }
  /** The calls and commands of `work`, by the count of the bridge and by `observe()`. */
  async function costOf(work: () => Promise<unknown>) {
    const bridge = () => ({ ...gateway.bridge.stats()[gateway.bridge.token]! })
    const [before, own] = [bridge(), await commands()]
    await work()
    const [after, ownAfter] = [bridge(), await commands()]
    const difference = (one: typeof own, other: typeof own) => [
      other.http - one.http,
      other.commands - one.commands,
    ]
    return { bridge: difference(before, after), own: difference(own, ownAfter) }
  }

  test('A ban is one call more, of six commands. Other requests cost nothing more. The bill has all of them.', async () => {
    const ip = newIp()
    await gateway.fetch('/login', { ip })
    const refused = await costOf(() => gateway.fetch('/login', { ip }))
    expect(refused).toEqual({ bridge: [1, 4], own: [1, 4] })
    const banned = await costOf(async () => {
      await gateway.fetch('/login', { ip })
      await gateway.settled()
    })
    expect(banned).toEqual({ bridge: [2, 10], own: [2, 10] })
  })

  test('A page is one call of six commands, and a look at its bans.', async () => {
    await operate('manual', 'ban', { key: newIp(), for: '1h' }, gateway)
    const operators = async () => (await stats()).total.store.operators!
    const before = await operators()
    const { bridge, own } = await costOf(() => pageOf('manual', undefined, gateway))
    expect(own).toEqual(bridge)
    expect(bridge).toEqual([2, 9])
    const { calls, billedCommands } = await operators()
    expect([calls - before.calls, billedCommands - before.billedCommands]).toEqual([2, 9])
  })

  test("With clock: 'edge' a page reads no clock.", async () => {
    const isolate = gateway.start({ ...config, clock: 'edge' }, { env })
    await offend(newIp(), isolate)
    const stats = () => gateway.bridge.stats()[gateway.bridge.token]!.commands
    const before = stats()
    expect((await pageOf('login', undefined, isolate)).bans).not.toEqual([])
    expect(stats() - before).toBe(5 + 2)
  })
})

describe('the configuration', () => {
  const one = (more: object) => ({
    policies: [{ name: 'a', limit: 1, window: '1m', penalty: { ...penalty, ...more } }],
  })

  test('Another value than true or false is an error at its field.', () => {
    expect(() => createGateway(one({ list: 'yes' }) as never)).toThrow(
      'policies[0].penalty.list: expected true or false, got "yes"',
    )
  })

  test('With durableObjects() a list is an error at its field, and bans without a list are none.', () => {
    const store = durableObjects()
    expect(() => createGateway({ ...one({}), store } as never)).toThrow(
      'policies[0].penalty.list: expected no value: Durable Objects have no list',
    )
    expect(() => createGateway({ ...one({ list: undefined }), store } as never)).not.toThrow()
  })
})
