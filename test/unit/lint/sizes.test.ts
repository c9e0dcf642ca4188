/** Fields that have no effect beside the limit and the window of their policy. */
import { bodies } from '../../../src/features/bodies/index.ts'
import { turns } from '../../../src/features/turns/index.ts'
import { casesOf, one, testFindings, testMessages } from '../../support/lint.ts'

const waits = { use: [turns()] }
const read = { use: [bodies()] }
const limits = { free: 10, pro: 1000 }
const ban = (length: '30s' | '1m' | '1h') => ({ after: 3, within: '10m', ban: length }) as const

testFindings({
  'A request waits for less than a fixed window.': [
    'short-wait policies[0].wait',
    one({ algorithm: 'fixed-window', wait: '2s' }, waits),
    one({ algorithm: 'token-bucket', wait: '2s' }, waits),
  ],
  'A request waits for just less than a fixed window.': [
    'short-wait policies[0].wait',
    one({ algorithm: 'fixed-window', window: '10s', wait: '9s' }, waits),
    one({ algorithm: 'fixed-window', window: '10s', wait: '10s' }, waits),
  ],
  'A request waits for a day to end.': [
    'short-wait policies[0].wait',
    one({ algorithm: 'fixed-window', window: 'day', wait: '2s' }, waits),
    one({ algorithm: 'sliding-window', window: '1d', wait: '2s' }, waits),
  ],
  'A lease is larger than the limit.': [
    'large-lease policies[0].lease.max',
    one({ limit: 5, lease: { max: 20, ttl: '1s' } }),
    one({ limit: 20, lease: { max: 20, ttl: '1s' } }),
  ],
  'A lease is larger than the limit of each plan.': [
    'large-lease policies[0].lease.max',
    one({ limit: 5, limits: { pro: 15 }, plan: 'header:x-plan', lease: { max: 20, ttl: '1s' } }),
    one({ limit: 5, limits: { pro: 20 }, plan: 'header:x-plan', lease: { max: 20, ttl: '1s' } }),
  ],
  'A lease is larger than the burst.': [
    'large-lease policies[0].lease.max',
    one({ algorithm: 'token-bucket', limit: 5, burst: 10, lease: { max: 11, ttl: '1s' } }),
    one({ algorithm: 'token-bucket', limit: 5, burst: 11, lease: { max: 11, ttl: '1s' } }),
  ],
  ...casesOf(['fixed-window', 'sliding-window', 'sliding-log'], (algorithm) => [
    `A ban is shorter than the window of a ${algorithm}.`,
    'short-ban policies[0].penalty.ban',
    one({ algorithm, penalty: ban('30s') }),
    one({ algorithm, penalty: ban('1m') }),
  ]),
  'A ban is shorter than a window, and not than the refill of a bucket.': [
    'short-ban policies[0].penalty.ban',
    one({ window: '1d', penalty: ban('1h') }),
    one({ algorithm: 'token-bucket', window: '1d', penalty: ban('1h') }),
  ],
  'A ban by refusals is short, and one by operators has no length.': [
    'short-ban policies[0].penalty.ban',
    one({ penalty: ban('30s') }),
    one({ penalty: 'manual' }),
  ],
  'A plan is the digest of an API key.': [
    'unknown-plan policies[0].plan',
    one({ limits, plan: 'api-key' }),
    one({ limits: { ...limits, ['0a'.repeat(32)]: 5 }, plan: 'api-key' }),
  ],
  'A plan is the digest of an API key, without a table.': [
    'unknown-plan policies[0].plan',
    one({ limits, plan: 'api-key' }, { apiKeys: { known: 'API_KEYS' } }),
    one(
      { limits, plan: { key: 'api-key', table: 'customers' } },
      { tables: { customers: { ['0a'.repeat(32)]: 'pro' } } },
    ),
  ],
  'A plan is the digest of a value of the body.': [
    'unknown-plan policies[0].plan',
    one({ limits, plan: { digest: 'body:plan' }, cost: { max: 2 } }, read),
    one({ limits, plan: 'body:plan', cost: { max: 2 } }, read),
  ],
})

testMessages([
  [
    one({ algorithm: 'fixed-window', wait: '2s' }, waits),
    '"a" lets a request wait for 2s, and its units come back only at the end of the window of 1m: before the last 2s no request waits.',
  ],
  [
    one({ limit: 5, lease: { max: 20, ttl: '1s' } }),
    '"a" leases up to 20 units to one isolate, and its quota has 5: the others find nothing left.',
  ],
  [
    one({ penalty: ban('30s') }),
    '"a" bans for 30s, and a client that has used up the quota is refused until the end of the window of 1m anyway.',
  ],
  [
    one({ limits, plan: 'api-key' }),
    '"a" takes the SHA-256 of api-key for the name of the plan, and it is never free or pro: every client gets the default limit.',
  ],
])
