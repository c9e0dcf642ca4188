import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { shieldMismatches } from '../../../../cli/check/shield.ts'
import type { ConfigOptions } from '../../../../src/core/config/options.ts'
import { parseConfig } from '../../../../src/core/config/parse.ts'
import { decideEach } from '../../../../src/core/decide/decide.ts'
import { createDenialCache } from '../../../../src/core/decide/denial-cache.ts'
import type { LimiterParts, Question } from '../../../../src/core/decide/question.ts'
import { hashedSubjects } from '../../../../src/core/decide/subject.ts'
import { createLocalStore } from '../../../../src/core/fallback/local.ts'
import { defaultFields } from '../../../../src/features/defaults.ts'
import { createShield } from '../../../../src/features/shield/stages.ts'
import { createMatcher } from '../../../support/create-matcher.ts'
import { fallbackOver } from '../../../support/with-fallback.ts'

// The local store admits the whole limit.
const policy = {
  name: 'a',
  limit: 2,
  window: '1m',
  algorithm: 'fixed-window',
  localShare: 1,
} as const
const shield = { binding: 'SHIELD', limit: 100, period: '10s' } as const
const refusal = { allowed: false, reason: 'shielded', retryAfterMs: 10_000, limits: [] }

describe('the shield', () => {
  const lines: string[] = []
  let now = 0
  const made = () => {
    lines.length = 0
    const config = parseConfig({ policies: [policy], shield }, defaultFields).shield!
    return createShield(
      config,
      (event, code) => void lines.push(`${event} ${code}`),
      () => now,
    )
  }
  const bound = (limit: unknown) => ({ SHIELD: { limit } })

  test('The shield calls the binding with a prefixed key, and follows its answer.', async () => {
    const keys: string[] = []
    let success = true
    const ask = made()
    const env = bound(async ({ key }: { key: string }) => {
      keys.push(key)
      return { success }
    })
    expect(await ask(env, 'subject')).toBeUndefined()
    success = false
    expect(await ask(env, 'subject')).toEqual(refusal)
    expect([keys, lines]).toEqual([['sluice:subject', 'sluice:subject'], []])
  })

  test('An answer of the binding without a result refuses no request.', async () => {
    const env = bound(async () => ({}))
    expect(await made()(env, 'subject')).toBeUndefined()
    expect(lines).toEqual([])
  })

  const fail = () => {
    throw new Error('no')
  }
  test.each<[string, object]>([
    ['missing', {}],
    ['missing', { SHIELD: 'a text' }],
    ['failed', bound(async () => fail())],
    ['failed', bound(fail)],
    ['failed', bound(async () => undefined)],
    ['timeout', bound(() => new Promise(() => {}))],
    ['timeout', bound(() => new Promise((_, reject) => setTimeout(reject, 150)))],
  ])(
    'On the shield event %s the request continues, the event is logged, and the binding gets no call for a second.',
    async (code, env) => {
      const ask = made()
      const start = performance.now()
      expect(await ask(env, 'subject')).toBeUndefined()
      expect(performance.now() - start).toBeLessThan(4000)
      expect(lines).toEqual([`shield ${code}`])
      const well = bound(async () => ({ success: false }))
      now += 999
      expect(await ask(well, 'subject')).toBeUndefined()
      now += 1
      expect(await ask(well, 'subject')).toEqual(refusal)
      expect(lines).toHaveLength(1)
    },
  )

  test('A clock that is set back does not extend the pause after a failure.', async () => {
    const ask = made()
    await ask({}, 'subject')
    now -= 3_600_000
    const well = bound(async () => ({ success: false }))
    expect(await ask(well, 'subject')).toEqual(refusal)
  })
})

describe('a decision with a shield', () => {
  /** The keys of all calls to the shield. */
  const keys: unknown[] = []
  let refuses = false
  const store = createLocalStore()
  const denialCache = createDenialCache()
  const parts: LimiterParts = {
    store: fallbackOver(store, { denialCache }).store,
    nameSubject: hashedSubjects('secret'),
    denialCache,
    async shield(key) {
      keys.push(key)
      return refuses ? (refusal as never) : undefined
    },
    onStoreError() {},
  }
  const decide = async (
    config: Partial<ConfigOptions>,
    { more = {}, isIdempotent = false, ip = '192.0.2.1' } = {} as {
      more?: Partial<Question>
      isIdempotent?: boolean
      ip?: string
    },
  ) => {
    keys.length = 0
    const describe = createMatcher({ policies: [policy], shield, ...config })
    const matched = await describe('/', { headers: { 'cf-connecting-ip': ip } })
    const idempotency = { key: 'k', fingerprint: 'f', forMs: 1000 }
    const options = isIdempotent ? { idempotency } : {}
    const [outcome] = await decideEach([{ matched, ...more }], parts, options)
    return [outcome!.decision.reason, keys.length]
  }
  const only = (change: object) => ({ policies: [{ ...policy, ...change }] })

  test('The shield is called for a request that would be charged, with the key of the shield.', async () => {
    expect(await decide({})).toEqual(['within-limit', 1])
    expect(keys).toEqual([[['ip', '192.0.2.1']]])
    refuses = true
    expect(await decide({})).toEqual(['shielded', 1])
    refuses = false
    await decide({ ...only({ key: 'host' }), shield: { ...shield, key: ['ip', 'host'] } })
    expect(keys).toEqual([
      [
        ['ip', '192.0.2.1'],
        ['host', 'www.example.com'],
      ],
    ])
  })

  test.each<[string, Parameters<typeof decide>, string]>([
    ['under a configuration without a shield', [{ shield: undefined as never }], 'within-limit'],
    ['that a deny rule matches', [{ deny: { path: '/' } }], 'denied'],
    ['that an allow rule matches', [{ allow: { path: '/' } }], 'no-policy'],
    ['without a policy', [only({ match: { path: '/x' } })], 'no-policy'],
    ['with only shadow policies', [only({ mode: 'shadow' })], 'within-limit'],
    ['that costs nothing', [only({ cost: 0 })], 'within-limit'],
    ['that is a peek', [{}, { more: { mode: 'peek' } }], 'within-limit'],
    ['with an idempotency key', [{}, { isIdempotent: true }], 'within-limit'],
    [
      'without the key of the shield',
      [{ shield: { ...shield, key: 'header:x-a' } }],
      'within-limit',
    ],
  ])('The shield is not called for a request %s.', async (_, [config, options = {}], reason) => {
    refuses = true
    const ip = `198.51.100.${_.length}`
    expect(await decide(config, { ip, ...options })).toEqual([reason, 0])
    refuses = false
  })

  test('The time of the shield counts towards the deadline of the store.', async () => {
    const given: (number | undefined)[] = []
    const slow: LimiterParts = {
      ...parts,
      store: {
        ...store,
        decide(requests, options) {
          given.push(options?.deadlineMs)
          return store.decide(requests)
        },
      },
      async shield() {
        await sleep(100)
        return undefined
      },
    }
    const config = { policies: [{ ...policy, deadline: 1000 }], shield }
    const matched = await createMatcher(config)('/', {
      headers: { 'cf-connecting-ip': '203.0.113.2' },
    })
    await decideEach([{ matched }], slow)
    expect(given[0]).toBeGreaterThanOrEqual(500)
    expect(given[0]).toBeLessThanOrEqual(902) // timers may fire up to 2 ms early
  })

  test('The shield is not called if the denial cache refuses the request.', async () => {
    const ip = '203.0.113.1'
    expect(await decide({}, { ip })).toEqual(['within-limit', 1])
    expect(await decide({}, { ip })).toEqual(['within-limit', 1])
    expect(await decide({}, { ip })).toEqual(['limited', 1])
    expect(await decide({}, { ip })).toEqual(['limited', 0])
  })
})

// The first test loads wrangler, which takes long on a busy machine.
describe('the comparison with wrangler.toml', { timeout: 120_000 }, () => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-'))
  })
  afterAll(() => rm(folder, { recursive: true }))
  const config = parseConfig({ policies: [policy], shield }, defaultFields)
  const binding = (name: string, limit: number, period: number) =>
    `[[ratelimits]]\nname = "${name}"\nnamespace_id = "1001"\nsimple = { limit = ${limit}, period = ${period} }\n`

  test.each<[string, string[]]>([
    [binding('SHIELD', 100, 10), []],
    [binding('OTHER', 1, 60) + binding('SHIELD', 100, 10), []],
    ['', ['shield.binding: wrangler.toml has no [[ratelimits]] with name = "SHIELD"']],
    [
      binding('SHIELD', 99, 60),
      [
        'shield.limit: 100 here, but limit = 99 in wrangler.toml',
        'shield.period: 10 s here, but period = 60 in wrangler.toml',
      ],
    ],
  ])('For the wrangler.toml %j npm run check reports %j.', async (text, lines) => {
    const file = join(folder, 'wrangler.toml')
    await writeFile(file, `name = "a"\nmain = "a.ts"\ncompatibility_date = "2026-10-01"\n${text}`)
    expect(await shieldMismatches(config, file)).toEqual(lines)
  })

  test('Without a shield npm run check does not read wrangler.toml.', async () => {
    expect(await shieldMismatches({ shield: undefined }, '/nowhere')).toEqual([])
  })
})
