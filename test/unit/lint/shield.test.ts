/** Shields that may refuse requests that all policies admit. */
import { one, several, shielded, testFindings, testMessages } from '../../support/lint.ts'

testFindings({
  'A shield has a lower limit than two windows of a policy.': [
    'tight-shield shield.limit',
    one({}, shielded(199)),
    one({}, shielded(200)),
  ],
  'A shield has a lower limit than a token bucket with its refill.': [
    'tight-shield shield.limit',
    one({ algorithm: 'token-bucket', burst: 500 }, shielded(515)),
    one({ algorithm: 'token-bucket', burst: 500 }, shielded(516)),
  ],
  'A shield has a lower limit than the short windows in its period together.': [
    'tight-shield shield.limit',
    one({ window: '3s' }, shielded(499)),
    one({ window: '3s' }, shielded(500)),
  ],
  'A shield has a lower limit than the largest plan of a sliding log.': [
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
  'A shield has a lower limit than two policies for different requests together.': [
    'tight-shield shield.limit',
    { ...several({ match: { path: '/a' } }, { match: { path: '/b' } }), ...shielded(399) },
    { ...several({ match: { path: '/a' } }, { limit: 150 }), ...shielded(300) },
  ],
  'A shield counts by address, and a policy admits any number of requests by one address.': [
    'tight-shield shield.key',
    { ...several({ match: { path: '/a' } }, { key: 'asn' }), ...shielded(10_000) },
    { ...several({}, { match: { path: '/a' }, key: 'asn' }), ...shielded(10_000) },
  ],
  'A shield counts all requests, and the only policy counts failures.': [
    'tight-shield shield.key',
    one({ countOnly: '4xx' }, shielded(10_000)),
    { ...several({ countOnly: '4xx' }, { limit: 200 }), ...shielded(10_000) },
  ],
  'A shield counts requests that cost 0 in one policy and count by another key in the other.': [
    'tight-shield shield.key',
    {
      ...several({ cost: [{ path: '/a', cost: 0 }] }, { match: { path: '/a' }, key: 'asn' }),
      ...shielded(10_000),
    },
    one({ cost: [{ path: '/a', cost: 0 }] }, shielded(200)),
  ],
  'A shield is too tight and does not accept the finding.': [
    'tight-shield shield.limit',
    one({}, shielded(199)),
    one({}, shielded(199, { accept: 'tight-shield' })),
  ],
  'A shield counts requests that only a shadow policy limits by its key.': [
    'tight-shield shield.key',
    { ...several({ mode: 'shadow' }, { key: 'asn' }), ...shielded(1000) },
    { ...several({ mode: 'shadow', limit: 50 }, {}), ...shielded(1000) },
  ],
  'A shield is too tight for an enforced policy.': [
    'tight-shield shield.limit',
    one({}, shielded(1)),
    one({ mode: 'shadow' }, shielded(1)),
  ],
})

const read = () => 'x'
testFindings({
  'A shield counts by a different function than the policy.': [
    'tight-shield shield.key',
    one({ key: read }, shielded(200, { key: () => 'x' })),
    one({ key: read }, shielded(200, { key: read })),
  ],
})

testMessages([
  [one({}, shielded(100)), 'The shield refuses after 100 requests in 10 s, and "a" may admit 200.'],
  [
    one({ countOnly: 401 }, shielded(100)),
    'The shield may refuse requests of "a" that the policies admit: no policy limits them by the key of the shield.',
  ],
])
