/** The conditions `jwt` and `apiKey`, which only a verified credential meets. */
import { describe, expect, test } from 'vitest'
import { sha256 } from '../../../../src/core/base/digest.ts'
import type {
  ConfigOptions,
  MatchOptions,
  PolicyOptions,
} from '../../../../src/core/config/options.ts'
import { jwt } from '../../../../src/features/jwt/index.ts'
import { createMatcher } from '../../../support/create-matcher.ts'
import { sign } from '../../../support/issuer.ts'
import { problems } from '../../../support/parse.ts'

const SECRET = 'a secret of at least 32 bytes, or so it says'
const KEY = 'key-of-a-customer'
const env = { JWT: SECRET, API_KEYS: await sha256(KEY) }
const signed = (secret = SECRET) => sign({ sub: 'ann' }, { alg: 'HS256' }, Buffer.from(secret))

const token = { authorization: `Bearer ${await signed()}` }
const forged = {
  authorization: `Bearer ${await signed('another secret of at least 32 bytes, too')}`,
}
const key = { 'x-api-key': KEY }
const guessed = { 'x-api-key': 'key-of-nobody' }

type Sent = Record<string, string>
async function matched(rest: Partial<ConfigOptions>, headers: Sent) {
  const matcher = createMatcher({
    use: [jwt({ secret: 'JWT' })],
    apiKeys: { known: 'API_KEYS' },
    policies: [{ name: 'a', limit: 5, window: '1m' }],
    ...rest,
  })
  return matcher('/', { headers }, { env })
}

/** True if a policy with this condition limits a request. */
async function limits(match: MatchOptions, headers: Sent): Promise<boolean> {
  const policies: PolicyOptions[] = [{ name: 'a', limit: 5, window: '1m', match }]
  return (await matched({ policies }, headers)).policies.length > 0
}

describe.each<[field: 'jwt' | 'apiKey', valid: Sent, invalid: Sent[]]>([
  ['jwt', token, [forged, { authorization: 'Bearer a.b.c' }]],
  ['apiKey', key, [guessed, { 'x-api-key': 'a, b' }]],
])('a condition %s', (field, valid, invalid) => {
  test(`A policy for requests without a verified ${field} limits all others, whatever they send.`, async () => {
    for (const match of [{ [field]: false }, { not: { [field]: true } }]) {
      expect(await limits(match, valid)).toBe(false)
      for (const headers of [{}, ...invalid]) expect(await limits(match, headers)).toBe(true)
    }
  })

  test(`A policy for requests with a verified ${field} limits no request without one, and also those with an invalid one.`, async () => {
    for (const match of [{ [field]: true }, { not: { [field]: false } }]) {
      expect(await limits(match, valid)).toBe(true)
      expect(await limits(match, {})).toBe(false)
      for (const headers of invalid) expect(await limits(match, headers)).toBe(true)
    }
  })

  test(`Only a verified ${field} is exempt by allow.`, async () => {
    const isExempt = async (headers: Sent) =>
      (await matched({ allow: { [field]: true } }, headers)).policies.length === 0
    expect(await isExempt(valid)).toBe(true)
    for (const headers of [{}, ...invalid]) expect(await isExempt(headers)).toBe(false)
  })

  test(`An entry of deny for requests without a ${field} refuses all but verified ones.`, async () => {
    const isDenied = async (headers: Sent) =>
      (await matched({ deny: { [field]: false } }, headers)).denied !== undefined
    expect(await isDenied(valid)).toBe(false)
    for (const headers of [{}, ...invalid]) expect(await isDenied(headers)).toBe(true)
  })

  test(`A cost and a reserve by ${field} are those of a client without one, unless it is verified.`, async () => {
    const match: MatchOptions = { [field]: false }
    const policy: PolicyOptions = {
      name: 'a',
      limit: 100,
      window: '1m',
      cost: { rules: [{ ...match, cost: 10 }] },
      reserve: [{ match, share: 0.5 }],
    }
    const of = async (headers: Sent) => {
      const [match] = (await matched({ policies: [policy] }, headers)).policies
      return [match!.cost, match!.floor]
    }
    expect(await of(valid)).toEqual([1, undefined])
    for (const headers of [{}, ...invalid]) expect(await of(headers)).toEqual([10, 50])
  })
})

test('Each credential has a condition of its own.', async () => {
  expect(await limits({ jwt: false, apiKey: false }, {})).toBe(true)
  for (const headers of [token, key, { ...token, ...key }]) {
    expect(await limits({ jwt: false, apiKey: false }, headers)).toBe(false)
  }
  expect(await limits({ apiKey: false }, token)).toBe(true) // a bearer token of another kind
})

test('A key function limits only requests whose session the app has not verified.', async () => {
  const matcher = createMatcher({
    policies: [
      {
        name: 'anonymous',
        limit: 5,
        window: '1m',
        key: ['ip', (context) => ((context as { user?: string }).user ? undefined : 'anonymous')],
        onMissingKey: 'skip',
      },
    ],
  })
  const counted = async (context: { user?: string }) => {
    const headers = { 'cf-connecting-ip': '203.0.113.7', authorization: 'invented' }
    return (await matcher('/', { headers }, { context })).policies.length > 0
  }
  expect([await counted({}), await counted({ user: 'ann' })]).toEqual([true, false])
})

test('A condition on a credential needs what verifies it.', () => {
  const policies = (match: MatchOptions) => [{ name: 'a', limit: 5, window: '1m', match }]
  expect(problems({ policies: policies({ not: { jwt: true } }) })).toEqual([
    expect.stringContaining('policies[0].match: use: [jwt()], with import'),
  ])
  expect(problems({ policies: policies({ apiKey: false }) })).toEqual([
    expect.stringContaining('apiKeys.known: the name of a variable'),
  ])
  expect(problems({ policies: [], allow: { jwt: true } })).toHaveLength(1)
  expect(problems({ policies: [], deny: { not: { apiKey: true } } })).toHaveLength(1)
  expect(problems({ policies: policies({ jwt: 'yes' as never }) })).toHaveLength(1)
})
