/** Policies by the body that a client can evade, or that never see a body. */
import { expect, test } from 'vitest'
import type { PolicyOptions } from '../../../src/core/config/options.ts'
import { bodies } from '../../../src/features/bodies/index.ts'
import { lintWorker } from '../../../src/lint/lint.ts'
import { one, testFindings } from '../../support/lint.ts'

const read = (policy: Partial<PolicyOptions>, rest: object = {}) =>
  one(policy, { use: [bodies()], ...rest })
const match = { body: { method: 'tools/call' } }
const max = { max: 50 }

const usage = { usage: 'usage.total_tokens', max: 400, cut: true }

testFindings({
  'A stream takes units one by one.': [
    'small-chunk policies[0].cost.otherwise',
    read({ cost: { ...usage, otherwise: 1 }, limit: 400 }),
    read({ cost: { ...usage, otherwise: 20 } }),
  ],
  'A response may use more than the quota, which each request reserves.': [
    'cost-never-fits policies[0].cost.max',
    read({ cost: { ...usage, max: 101 } }),
    read({ cost: { ...usage, max: 100 } }),
  ],
  'A body that cannot be read costs one unit.': [
    'unreadable-body policies[0]',
    read({ match }),
    read({ match, cost: max }),
  ],
  'A body that cannot be read costs one unit, although other requests cost more.': [
    'unreadable-body policies[0]',
    read({ cost: { body: 'max_tokens' } }),
    read({ match, mode: 'shadow' }),
  ],
  'A policy refuses a request without its key, which has no part of the body.': [
    'unreadable-body policies[0]',
    read({ match, key: ['ip', 'method'], onMissingKey: 'refuse' }),
    read({ match, key: ['ip', 'body:method'], onMissingKey: 'refuse', accept: 'spoofable-key' }),
  ],
  'A policy uses the body of GET.': [
    'never-a-body policies[0].match.method',
    read({ match: { ...match, method: 'GET' }, cost: max }),
    read({ match: { ...match, method: ['GET', 'POST'] }, cost: max }),
  ],
  'A policy counts by a value of the body that the client chooses.': [
    'spoofable-key policies[0].key[0]',
    read({ key: 'body:name', cost: max, match: { body: { name: 'a*' } } }),
    read({ key: 'body:name', cost: max, match: { body: { name: ['a', 'b'] } } }),
  ],
})

test('A policy that uses the body is a finding in a Worker without an origin, whose forward-auth has no body.', () => {
  const codes = (config: object) => lintWorker(config).map(({ code, path }) => `${code} ${path}`)
  const policy = { match, cost: max }
  const accept = 'no-origin'
  expect(codes(read(policy, { accept }))).toEqual(['body-without-origin policies[0]'])
  expect(codes(read(policy, { origin: 'zone' }))).toEqual([])
  expect(codes(read({ ...policy, accept: 'body-without-origin' }, { accept }))).toEqual([])
})
