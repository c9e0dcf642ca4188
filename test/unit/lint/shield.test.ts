/** Shields that refuse requests which every policy would admit. */
import { one, several, shielded, testFindings, testMessages } from '../../support/lint.ts'

testFindings([
  [
    'A shield is smaller than two windows.',
    'tight-shield shield.limit',
    one({}, shielded(199)),
    one({}, shielded(200)),
  ],
  [
    'A shield is smaller than a bucket and its refill.',
    'tight-shield shield.limit',
    one({ algorithm: 'token-bucket', burst: 500 }, shielded(515)),
    one({ algorithm: 'token-bucket', burst: 500 }, shielded(516)),
  ],
  [
    'A shield is smaller than the short windows of its period.',
    'tight-shield shield.limit',
    one({ window: '3s' }, shielded(499)),
    one({ window: '3s' }, shielded(500)),
  ],
  [
    'A shield is smaller than the largest plan of a log.',
    'tight-shield shield.limit',
    one(
      { algorithm: 'sliding-log', window: '5s', limits: { pro: 300 }, plan: 'country' },
      shielded(599),
    ),
    one(
      { algorithm: 'sliding-log', window: '5s', limits: { pro: 300 }, plan: 'country' },
      shielded(600),
    ),
  ],
  [
    'A shield is smaller than what two policies of different requests admit together.',
    'tight-shield shield.limit',
    { ...several({ match: { path: '/a' } }, { match: { path: '/b' } }), ...shielded(399) },
    { ...several({ match: { path: '/a' } }, { limit: 150 }), ...shielded(300) },
  ],
  [
    'A shield counts by address, and a policy admits any number of requests by one address.',
    'tight-shield shield.key',
    { ...several({ match: { path: '/a' } }, { key: 'asn' }), ...shielded(10_000) },
    { ...several({}, { match: { path: '/a' }, key: 'asn' }), ...shielded(10_000) },
  ],
  [
    'A shield counts all requests, and the only policy counts failures.',
    'tight-shield shield.key',
    one({ countOnly: '4xx' }, shielded(10_000)),
    { ...several({ countOnly: '4xx' }, {}), ...shielded(10_000) },
  ],
  [
    'A shield counts requests that are free in one policy and counted by another key in the next.',
    'tight-shield shield.key',
    {
      ...several({ cost: [{ path: '/a', cost: 0 }] }, { match: { path: '/a' }, key: 'asn' }),
      ...shielded(10_000),
    },
    one({ cost: [{ path: '/a', cost: 0 }] }, shielded(200)),
  ],
  [
    'A shield is tight unless it accepts the finding.',
    'tight-shield shield.limit',
    one({}, shielded(199)),
    one({}, shielded(199, { accept: 'tight-shield' })),
  ],
  [
    'A shield is tight if a policy in shadow is its only bound.',
    'tight-shield shield.key',
    { ...several({ mode: 'shadow' }, { key: 'asn' }), ...shielded(1000) },
    { ...several({ mode: 'shadow', limit: 50 }, {}), ...shielded(1000) },
  ],
  [
    'A shield is never asked unless a policy is enforced.',
    'tight-shield shield.limit',
    one({}, shielded(1)),
    one({ mode: 'shadow' }, shielded(1)),
  ],
])

const read = () => 'x'
testFindings([
  [
    'A shield counts by another function than the policy.',
    'tight-shield shield.key',
    one({ key: read }, shielded(200, { key: () => 'x' })),
    one({ key: read }, shielded(200, { key: read })),
  ],
])

testMessages([
  [one({}, shielded(100)), 'The shield refuses after 100 requests in 10 s, and "a" may admit 200.'],
  [
    one({ countOnly: 401 }, shielded(100)),
    'The shield may refuse requests of "a" that the policies admit: no policy limits them by the key of the shield.',
  ],
])
