/** Policies that a client can evade. */
import type { MatchOptions } from '../../../src/core/config/options.ts'
import {
  casesOf,
  denying,
  jwt,
  login,
  matching,
  one,
  priced,
  several,
  testFindings,
  testMessages,
} from '../../support/lint.ts'

testFindings({
  'A policy counts single IPv6 addresses.': [
    'ipv6-by-address policies[0].key[0].ip.v6',
    one({ key: { ip: { v6: 128 } } }),
    one({ key: { ip: { v6: 64 } } }),
  ],
  'A policy counts networks smaller than a /64 if its key is missing.': [
    'ipv6-by-address policies[0].onMissingKey.key[0].ip.v6',
    one({ key: 'asn', onMissingKey: { key: { ip: { v6: 65 } } } }),
    one({ key: 'asn', onMissingKey: { key: { ip: { v6: 56 } } } }),
  ],
  'An entry of deny refuses a single IPv6 address.': [
    'ipv6-by-address deny[0].ip[1]',
    denying({ ip: ['198.51.100.7', '2001:db8::7'] }),
    denying({ ip: ['198.51.100.7', '2001:db8::/64', '::ffff:198.51.100.8'] }),
  ],
  ...casesOf(['header:x-user', 'cookie:sid', 'query:user', 'api-key'], (part) => [
    `A client chooses the key ${part}.`,
    'spoofable-key policies[0].key[0]',
    one({ key: part }),
    part === 'api-key'
      ? one({ key: part }, { apiKeys: { known: 'API_KEYS' } })
      : several({ key: part }, { limit: 5000 }),
  ]),
  'A client chooses one part of a key that also contains its address.': [
    'spoofable-key policies[0].key[1]',
    one({ key: ['ip', 'header:x-user'] }),
    one({ key: ['ip', 'asn'] }),
  ],
  'A client chooses the key in onMissingKey.': [
    'spoofable-key policies[0].onMissingKey.key[0]',
    one({ key: 'jwt:sub', onMissingKey: { key: 'cookie:sid' } }, { use: [jwt] }),
    one({ key: 'jwt:sub', onMissingKey: { key: 'ip' } }, { use: [jwt] }),
  ],
  'A client chooses a key, and the other policy skips requests without its key.': [
    'spoofable-key policies[0].key[0]',
    several({ key: 'cookie:sid' }, { key: 'asn', onMissingKey: 'skip' }),
    several({ key: 'cookie:sid' }, { key: 'asn' }),
  ],
  'A client chooses a key, and the policy by address applies to fewer requests.': [
    'spoofable-key policies[0].key[0]',
    several({ key: 'cookie:sid' }, { key: 'ip', match: { path: '/a' } }),
    several({ key: 'cookie:sid', match: { path: '/a/b' } }, { key: 'ip', match: { path: '/a/*' } }),
  ],
})

/** login-fails-open */
testFindings({
  'A login fails open.': [
    'login-fails-open policies[0].onStoreError',
    login(),
    login({ onStoreError: 'deny' }),
  ],
  ...casesOf(
    [
      '/api/Sign-In',
      '/users/:id/resetPassword',
      '/oauth/token/*',
      '/2fa',
      '/v1/session',
      '/log_in',
    ],
    (path) => [
      `The login ${path} fails open.`,
      'login-fails-open policies[0].onStoreError',
      login({ match: { path: ['/x', path] } }),
      login({ match: { path: ['/x', path] }, onStoreError: 'local' }),
    ],
  ),
  'A login fails open for a method that writes.': [
    'login-fails-open policies[0].onStoreError',
    login({ match: { path: '/login', method: ['GET', 'POST'] } }),
    login({ match: { path: '/login', method: 'GET' } }),
  ],
  'A login whose path contains the whole word fails open.': [
    'login-fails-open policies[0].onStoreError',
    login({ match: { path: '/my.login' } }),
    login({ match: { path: ['/blogindex', '/authors', '/x/:token'] } }),
  ],
  'A login fails open with an enforced policy.': [
    'login-fails-open policies[0].onStoreError',
    login(),
    login({ mode: 'shadow' }),
  ],
  'A login fails open although a policy for other requests fails closed.': [
    'login-fails-open policies[1].onStoreError',
    several({ onStoreError: 'deny', match: { path: '/x' } }, { ...login().policies[0], name: 'b' }),
    several({ onStoreError: 'deny' }, { ...login().policies[0], name: 'b' }),
  ],
})

/** spoofable-match */
testFindings({
  ...casesOf<MatchOptions>(
    [
      { header: { authorization: true } },
      { header: { authorization: 'Bearer *' } },
      { header: { 'x-api-key': true, authorization: true }, path: '/api/*', method: 'GET' },
      { query: { key: '*' + 'e' } },
    ],
    (not) => [
      `A policy does not limit a client that sends ${JSON.stringify(not)}.`,
      `spoofable-match policies[0].match.not[0].${not.header ? 'header' : 'query'}`,
      matching({ not }),
      matching({ not: { ...not, ip: '198.51.100.0/24' } }),
    ],
  ),
  'A client evades one of several exceptions, and not that with a secret.': [
    'spoofable-match policies[0].match.not[1].header',
    matching({ not: [{ header: { 'x-key': '6bCV2rf4jKtQ9dXw' } }, { header: { cookie: true } }] }),
    matching({ not: [{ header: { 'x-key': '6bCV2rf4jKtQ9dXw' } }, { path: '/health' }] }),
  ],
  'A client evades an exception for a header, and not one for a verified token.': [
    'spoofable-match policies[0].match.not[0].header',
    matching({ not: { header: { authorization: true }, jwt: false } }, { use: [jwt] }),
    matching({ not: { header: { authorization: true }, jwt: true } }, { use: [jwt] }),
  ],
  'A client evades an exception for a method that writes.': [
    'spoofable-match policies[0].match.not[0].header',
    matching({ not: { header: { origin: true }, method: ['OPTIONS', 'POST'] } }),
    matching({ not: { header: { origin: true }, method: 'OPTIONS' } }),
  ],
  'A client pays nothing with a header.': [
    'spoofable-match policies[0].cost[1].header',
    priced([
      { path: '/x', cost: 0 },
      { header: { 'x-free': true }, cost: 0 },
    ]),
    priced([
      { path: '/x', cost: 0 },
      { header: { 'x-free': true }, cost: 2 },
    ]),
  ],
})

testMessages([
  [
    matching({ not: { header: { authorization: true } } }),
    '"a" does not limit a request with authorization, which any client can send.',
  ],
  [
    denying({ name: 'abuse', ip: ['2001:db8::7', '2001:db8::8'] }),
    'deny[0] "abuse" refuses 2001:db8::7 and 1 more, and a client can use other addresses in the same /64.',
  ],
  [
    one({ key: ['ip', 'cookie:sid'] }),
    '"a" counts by cookie:sid, which the client chooses: each new value gets a new quota.',
  ],
  [login(), '"a" protects /login, and allows every attempt while Redis is unavailable.'],
])
