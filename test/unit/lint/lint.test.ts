import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import shipped from '../../../sluice.config.ts'
import type { ConfigError, ConfigProblem } from '../../../src/base/errors.ts'
import { findingCodes } from '../../../src/config/findings.ts'
import type {
  ConfigOptions,
  ListOptions,
  MatchOptions,
  PolicyOptions,
} from '../../../src/config/options.ts'
import { defineConfig, parseConfig } from '../../../src/config/parse.ts'
import * as library from '../../../src/index.ts'
import { lint, lintWorker } from '../../../src/lint/lint.ts'

type Terms = Partial<PolicyOptions>
const base = { name: 'a', limit: 100, window: '1m' } as const

/** A configuration of one policy `a` with a change; or of several with names of their own. */
const one = (change: Terms, rest: Partial<ConfigOptions> = {}): ConfigOptions => ({
  ...rest,
  policies: [{ ...base, ...change }],
})
const several = (...policies: Terms[]): ConfigOptions => ({
  policies: policies.map((policy, index) => ({ ...base, name: 'abcd'[index]!, ...policy })),
})
const matching = (match: MatchOptions, rest?: Partial<ConfigOptions>) => one({ match }, rest)
const listing = several({}, { match: { path: '/api/*', method: ['GET', 'POST'] }, key: 'asn' })
const allowing = (...allow: (ListOptions & { policies?: string | string[] })[]) => ({
  ...listing,
  allow,
})
const denying = (...deny: ListOptions[]) => ({ ...listing, deny })
const priced = (cost: PolicyOptions['cost'], change: Terms = {}) => one({ ...change, cost: cost! })
const login = (change: Terms = {}) =>
  one({
    match: { path: '/login', method: 'POST' },
    limit: 5,
    onStoreError: 'allow',
    ...change,
  })
const alike = (count: number, change: Terms = {}): ConfigOptions => ({
  policies: Array.from({ length: count }, (_, index) => ({
    ...base,
    name: `p${index}`,
    match: { path: `/${index}` },
    ...(index === 0 && change),
  })),
})
const shielded = (limit: number, change: object = {}) => ({
  shield: { binding: 'SHIELD', limit, period: '10s' as const, ...change },
})
const jwt = { secret: 'JWT_SECRET' }
const planned = (customers: Record<string, string>): ConfigOptions => ({
  ...one({
    key: 'country',
    limits: { free: 100, pro: 5000 },
    plan: { key: 'country', table: 'customers' },
  }),
  tables: { customers },
})
const networks = Array.from({ length: 10_000 }, (_, n) => `10.${n >> 8}.${n & 255}.0/24`)

/** The defect; what is found, as "code path"; a configuration that has it; and one that nearly has. */
const table: [defect: string, finding: string, broken: object, nearMiss: object][] = [
  // What the parser finds
  [
    'two policies share a name',
    'duplicate-name policies[1].name',
    several({ name: 'a' }, { name: 'a', match: { path: '/x' } }),
    several({ name: 'a' }, { name: 'A', match: { path: '/x' }, limit: 5 }),
  ],
  ['a limit of nothing', 'invalid policies[0].limit', one({ limit: 0 }), one({ limit: 1 })],

  // unreachable-policy
  [
    'a match is taken away by its own not',
    'unreachable-policy policies[0].match.not',
    matching({ path: '/api/users', not: { path: '/api/*' } }),
    matching({ path: '/api/*', not: { path: '/api/users' } }),
  ],
  [
    'one not in general',
    'unreachable-policy policies[0].match.not',
    matching({ not: { path: '/*' } }),
    matching({ not: { path: '/' } }),
  ],
  [
    'methods are emptied by several nots',
    'unreachable-policy policies[0].match.not',
    matching({ method: ['POST', 'PUT'], not: [{ method: 'POST' }, { method: 'PUT' }] }),
    matching({ method: ['POST', 'PUT'], not: [{ method: 'POST' }, { method: 'PUT', path: '/x' }] }),
  ],
  [
    'a network is taken away by a wider one',
    'unreachable-policy policies[0].match.not',
    matching({ ip: '203.0.113.0/25', not: { ip: ['198.51.100.7', '203.0.113.0/24'] } }),
    matching({ ip: '203.0.113.0/24', not: { ip: '203.0.113.0/25' } }),
  ],
  [
    'a host is taken away by a wildcard',
    'unreachable-policy policies[0].match.not',
    matching({ host: ['eu.example.com', '*.eu.example.com'], not: { host: '*.example.com' } }),
    matching({ host: ['example.com', '*.example.com'], not: { host: '*.example.com' } }),
  ],
  [
    'a not of a not leaves nothing',
    'unreachable-policy policies[0].match.not',
    matching({ path: '/a', not: { path: '/*', not: { path: '/b' } } }),
    matching({ path: '/a', not: { path: '/*', not: { method: 'POST' } } }),
  ],
  [
    'a path is reserved',
    'unreachable-policy policies[0].match.path',
    matching({ path: ['/_sluice/health', '/%5Fsluice/*'] }),
    matching({ path: ['/_sluice/health', '/_sluice2/*'] }),
  ],
  [
    'a path is written as none is seen',
    'unreachable-policy policies[0].match.path',
    matching({ path: '/a/../b' }),
    matching({ path: '/a/..b' }),
  ],

  // skipped-by-allow
  [
    'an allow entry skips all that a policy names',
    'skipped-by-allow policies[1].match',
    allowing({ path: '/api/*' }),
    allowing({ path: '/api/v1/*' }),
  ],
  [
    'allow entries skip it together',
    'skipped-by-allow policies[1].match',
    allowing({ path: '/api/*', method: 'GET' }, { method: 'POST' }),
    allowing({ path: '/api/*', method: 'GET' }, { method: 'PUT' }),
  ],
  [
    'an allow entry that names the policy',
    'skipped-by-allow policies[1].match',
    allowing({ path: '/*', policies: ['b'] }),
    allowing({ path: '/api/v1/*', policies: ['a', 'b'] }),
  ],
  [
    'what allow spares is what the policy does not name',
    'skipped-by-allow policies[0].match',
    {
      ...one({ match: { country: 'DE', path: '/a' } }),
      allow: { path: '/*', not: { path: '/b' } },
    },
    { ...one({ match: { country: 'DE' } }), allow: { path: '/*', not: { path: '/b' } } },
  ],

  // refused-by-deny
  [
    'a deny entry refuses all that a policy names',
    'refused-by-deny policies[1].match',
    denying({ path: '/api/*' }),
    denying({ path: '/api/*', country: 'T1' }),
  ],

  // redundant-policy
  [
    'a narrower policy by the same key meets the same requests',
    'redundant-policy policies[0]',
    several({ limit: 100, match: { path: '/a' } }, { limit: 50, window: '2m' }),
    several({ limit: 100, match: { path: '/a' } }, { limit: 50, window: '90s' }),
  ],
  [
    'two policies are equal',
    'redundant-policy policies[1]',
    several({}, {}),
    several({}, { limit: 99, window: '30s' }),
  ],
  [
    'of another key',
    'redundant-policy policies[0]',
    several({ key: 'asn' }, { key: 'asn', limit: 50 }),
    several({ key: 'asn' }, { key: 'country', limit: 50 }),
  ],
  [
    'of another algorithm',
    'redundant-policy policies[0]',
    several({ algorithm: 'gcra', burst: 5 }, { algorithm: 'gcra', limit: 50 }),
    several({ algorithm: 'gcra' }, { limit: 50 }),
  ],
  [
    'with room for a larger burst',
    'redundant-policy policies[0]',
    several({ algorithm: 'token-bucket', burst: 100 }, { algorithm: 'token-bucket', limit: 50 }),
    several({ algorithm: 'token-bucket', burst: 40 }, { algorithm: 'token-bucket', limit: 50 }),
  ],
  [
    'of a log that forgets sooner',
    'redundant-policy policies[0]',
    several({ algorithm: 'sliding-log' }, { algorithm: 'sliding-log', limit: 50, window: '61s' }),
    several({ algorithm: 'sliding-log' }, { algorithm: 'sliding-log', limit: 50, window: '59s' }),
  ],
  [
    'of windows that open otherwise',
    'redundant-policy policies[0]',
    several(
      { algorithm: 'fixed-window', align: 'clock' },
      { algorithm: 'fixed-window', align: 'clock', limit: 50 },
    ),
    several(
      { algorithm: 'fixed-window', align: 'clock' },
      { algorithm: 'fixed-window', limit: 50 },
    ),
  ],
  [
    'of another say while Redis is away',
    'redundant-policy policies[0]',
    several({ deadline: '200ms' }, { limit: 50, deadline: '200ms' }),
    several({ deadline: '200ms' }, { limit: 50 }),
  ],
  [
    'and of another answer then',
    'redundant-policy policies[0]',
    several({ onStoreError: 'deny' }, { limit: 50, onStoreError: 'deny' }),
    several({ onStoreError: 'deny' }, { limit: 50 }),
  ],
  [
    'of another cost',
    'redundant-policy policies[0]',
    several({ cost: 2 }, { cost: 2, limit: 50 }),
    several({ cost: 2 }, { limit: 50 }),
  ],
  [
    'that only shadows',
    'redundant-policy policies[0]',
    several({ mode: 'shadow' }, { limit: 50 }),
    several({}, { limit: 50, mode: 'shadow' }),
  ],
  [
    'that an allow entry spares',
    'redundant-policy policies[0]',
    { ...several({}, { limit: 50 }), allow: { country: 'DE', policies: ['a', 'b'] } },
    { ...several({}, { limit: 50 }), allow: { country: 'DE', policies: 'b' } },
  ],
  [
    'windows of a fixed window that open when they will',
    'redundant-policy policies[0]',
    several({ algorithm: 'fixed-window' }, { algorithm: 'fixed-window', limit: 50, window: '1h' }),
    several({ algorithm: 'fixed-window' }, { algorithm: 'fixed-window', limit: 51, window: '1h' }),
  ],
  [
    'a parameter that is another segment',
    'redundant-policy policies[0]',
    several(
      { key: 'path:id', match: { path: '/:id/*' } },
      { key: 'path:id', match: { path: '/:id/*' }, limit: 50 },
    ),
    several(
      { key: 'path:id', match: { path: '/x/:id' } },
      { key: 'path:id', match: { path: '/:id/*' }, limit: 50 },
    ),
  ],
  [
    'a path of several readings that is another subject',
    'redundant-policy policies[0]',
    several(
      { key: 'path', match: { path: '/a/*' } },
      { key: 'path', match: { path: '/a/*' }, limit: 50 },
    ),
    several({ key: 'path', match: { path: '/a/*' } }, { key: 'path', limit: 50 }),
  ],

  // list-takes-all
  [
    'allow takes every request',
    'list-takes-all allow[0]',
    { ...one({}), allow: { path: '/*' } },
    { ...one({}), allow: { path: '/' } },
  ],
  [
    'deny takes every request',
    'list-takes-all deny[0]',
    { ...one({}), deny: {} },
    { ...one({}), deny: { not: { method: ['GET', 'POST'] } } },
  ],
  [
    'allow takes every address',
    'list-takes-all allow[0]',
    { ...one({}), allow: { ip: ['198.51.100.7', '0.0.0.0/0'] } },
    { ...one({}), allow: { ip: '0.0.0.0/0', path: '/health' } },
  ],

  // cost-never-fits
  ['a cost above the limit', 'cost-never-fits policies[0].cost', priced(101), priced(100)],
  [
    'a rule of a cost above the limit',
    'cost-never-fits policies[0].cost[1].cost',
    priced([
      { path: '/a', cost: 2 },
      { path: '/b', cost: 101 },
    ]),
    priced([
      { path: '/a', cost: 2 },
      { path: '/b', cost: 100 },
    ]),
  ],
  [
    'a price for the rest above the limit',
    'cost-never-fits policies[0].cost.otherwise',
    priced({ rules: [{ path: '/a', cost: 1 }], otherwise: 101 }),
    priced({ rules: [{ path: '/a', cost: 1 }], otherwise: 100, header: 'x-cost' }),
  ],
  [
    'a cost above the burst of gcra, which is 1 unless told',
    'cost-never-fits policies[0].cost.rules[0].cost',
    priced({ rules: [{ method: 'POST', cost: 2 }] }, { algorithm: 'gcra' }),
    priced({ rules: [{ method: 'POST', cost: 2 }] }, { algorithm: 'gcra', burst: 2 }),
  ],

  // unlikely-duration
  [
    'a window in seconds',
    'unlikely-duration policies[0].window',
    one({ window: 60 }),
    one({ window: 60_000 }),
  ],
  [
    'a deadline in seconds',
    'unlikely-duration policies[0].deadline',
    one({ deadline: 1 }),
    one({ deadline: 100 }),
  ],
  [
    "the configuration's deadline is an age",
    'unlikely-duration deadline',
    one({}, { deadline: '1m' }),
    one({}, { deadline: '1s' }),
  ],
  [
    'an origin has no time',
    'unlikely-duration originTimeout',
    one({}, { originTimeout: 60 }),
    one({}, { originTimeout: '60s' }),
  ],

  // ipv6-by-address
  [
    'IPv6 is counted by address',
    'ipv6-by-address policies[0].key[0].ip.v6',
    one({ key: { ip: { v6: 128 } } }),
    one({ key: { ip: { v6: 64 } } }),
  ],
  [
    'so where the key is missing',
    'ipv6-by-address policies[0].onMissingKey.key[0].ip.v6',
    one({ key: 'asn', onMissingKey: { key: { ip: { v6: 65 } } } }),
    one({ key: 'asn', onMissingKey: { key: { ip: { v6: 56 } } } }),
  ],
  [
    'one address of IPv6 is refused',
    'ipv6-by-address deny[0].ip[1]',
    denying({ ip: ['198.51.100.7', '2001:db8::7'] }),
    denying({ ip: ['198.51.100.7', '2001:db8::/64', '::ffff:198.51.100.8'] }),
  ],

  // spoofable-key
  ...(['header:x-user', 'cookie:sid', 'query:user', 'api-key'] as const).map(
    (part): [string, string, object, object] => [
      `a key is ${part}`,
      'spoofable-key policies[0].key[0]',
      one({ key: part }),
      part === 'api-key'
        ? one({ key: part }, { apiKeys: { known: 'API_KEYS' } })
        : several({ key: part }, { limit: 5000 }),
    ],
  ),
  [
    'a part of a key is, an address beside it',
    'spoofable-key policies[0].key[1]',
    one({ key: ['ip', 'header:x-user'] }),
    one({ key: ['ip', 'asn'] }),
  ],
  [
    'a key is, where another is missing',
    'spoofable-key policies[0].onMissingKey.key[0]',
    one({ key: 'jwt:sub', onMissingKey: { key: 'cookie:sid' } }, { jwt }),
    one({ key: 'jwt:sub', onMissingKey: { key: 'ip' } }, { jwt }),
  ],
  [
    'the policy beside it is spoofable as well, or meets less',
    'spoofable-key policies[0].key[0]',
    several({ key: 'cookie:sid' }, { key: 'ip', match: { path: '/a' } }),
    several({ key: 'cookie:sid', match: { path: '/a/b' } }, { key: 'ip', match: { path: '/a/*' } }),
  ],

  // spoofable-list
  [
    'whoever sends a word is allowed',
    'spoofable-list allow[0].header',
    allowing({ header: { 'x-internal': 'true' } }),
    allowing({ header: { 'x-internal': 'true' }, ip: '198.51.100.0/24' }),
  ],
  [
    'whoever sends a header is allowed',
    'spoofable-list allow[0].header',
    allowing({ header: { authorization: true }, path: '/api/v1/*' }),
    allowing({ header: { 'x-monitor': '6bCV2rf4jKtQ9dXw' }, path: '/api/v1/*' }),
  ],
  [
    'and not for a preflight only',
    'spoofable-list allow[0].header',
    allowing({ header: { 'access-control-request-method': true }, method: ['OPTIONS', 'POST'] }),
    allowing({ header: { 'access-control-request-method': true }, method: 'OPTIONS' }),
  ],
  [
    'one of the words is short',
    'spoofable-list allow[0].header',
    allowing({ header: { 'x-monitor': ['6bCV2rf4jKtQ9dXw', 'test'] } }),
    allowing({ header: { 'x-monitor': ['6bCV2rf4jKtQ9dXw', 'oDiQ52LmPz8sYhcE'] } }),
  ],
  [
    'only the beginning of a secret is asked for',
    'spoofable-list allow[0].header',
    allowing({ header: { 'x-monitor': '6bCV2rf4jKtQ9dXw*' } }),
    allowing({ header: { 'x-monitor': '6bCV2rf4jKtQ9dXw', 'x-any': true } }),
  ],
  [
    'whoever is silent is allowed',
    'spoofable-list allow[0].not[0].header',
    allowing({ country: 'DE', not: { header: { 'x-plan': 'free' } } }),
    denying({ country: 'DE', not: { header: { 'x-plan': 'free' } } }),
  ],

  // dodgeable-policy
  [
    'a header decides which quota, and none does for those without',
    'dodgeable-policy policies[0].match.header',
    matching({ header: { 'x-plan': 'free' } }),
    several({ match: { header: { 'x-plan': 'free' } } }, { limit: 5000 }),
  ],
  [
    'a header spares from the limit',
    'dodgeable-policy policies[0].match.not[1].header',
    matching({ not: [{ path: '/a' }, { header: { 'x-internal': true } }] }),
    matching({ not: [{ path: '/a' }, { header: { 'x-internal': '6bCV2rf4jKtQ9dXw' } }] }),
  ],
  [
    'those who are spared have no quota of their own',
    'dodgeable-policy policies[0].match.not[0].header',
    several(
      { match: { not: { header: { 'x-a': true }, path: '/a/*' } } },
      { match: { path: '/a/b' }, limit: 5 },
    ),
    several(
      { match: { not: { header: { 'x-a': true }, path: '/a/*' } } },
      { match: { path: '/a/*' }, limit: 5 },
    ),
  ],
  [
    'who leaves out the key is skipped',
    'dodgeable-policy policies[0].onMissingKey',
    one({ key: 'jwt:sub', onMissingKey: 'skip' }, { jwt }),
    { ...several({ key: 'jwt:sub', onMissingKey: 'skip' }, { limit: 5 }), jwt },
  ],
  [
    'and by the policy beside it as well',
    'dodgeable-policy policies[0].onMissingKey',
    {
      jwt,
      ...several(
        { key: 'jwt:sub', onMissingKey: 'skip', match: { path: '/a' } },
        { key: 'jwt:sub', onMissingKey: 'skip', accept: 'dodgeable-policy', algorithm: 'gcra' },
      ),
    },
    { ...one({ key: 'jwt:sub', onMissingKey: 'refuse' }), jwt },
  ],

  // login-fails-open
  [
    'a login fails open',
    'login-fails-open policies[0].onStoreError',
    login(),
    login({ onStoreError: 'deny' }),
  ],
  ...[
    '/api/Sign-In',
    '/users/:id/resetPassword',
    '/oauth/token/*',
    '/2fa',
    '/v1/session',
    '/log_in',
  ].map((path): [string, string, object, object] => [
    `so does ${path}`,
    'login-fails-open policies[0].onStoreError',
    login({ match: { path: ['/x', path] } }),
    login({ match: { path: ['/x', path] }, onStoreError: 'local' }),
  ]),
  [
    'a login that is read',
    'login-fails-open policies[0].onStoreError',
    login({ match: { path: '/login', method: ['GET', 'POST'] } }),
    login({ match: { path: '/login', method: 'GET' } }),
  ],
  [
    'a word within a word, or a parameter',
    'login-fails-open policies[0].onStoreError',
    login({ match: { path: '/my.login' } }),
    login({ match: { path: ['/blogindex', '/authors', '/x/:token'] } }),
  ],
  [
    'a login in shadow',
    'login-fails-open policies[0].onStoreError',
    login(),
    login({ mode: 'shadow' }),
  ],

  // large-log
  [
    'a large log',
    'large-log policies[0].limit',
    one({ algorithm: 'sliding-log', limit: 1001 }),
    one({ algorithm: 'sliding-log', limit: 1000 }),
  ],

  [
    'a large log of one plan',
    'large-log policies[0].limits',
    one({ algorithm: 'sliding-log', limit: 5, limits: { pro: 1001 }, plan: 'country' }),
    one({ algorithm: 'sliding-log', limit: 5, limits: { pro: 1000 }, plan: 'country' }),
  ],

  // many-policies
  ['33 policies by one key', 'many-policies policies[32]', alike(34), alike(33, { key: 'asn' })],

  // global-key
  [
    'every request is one subject',
    'global-key policies[0].key',
    one({ key: ['global', 'method'], match: { path: '/*' } }),
    one({ key: 'global', match: { path: '/api/*' } }),
  ],

  // tight-shield
  [
    'a shield that refuses what two windows may hold',
    'tight-shield shield.limit',
    one({}, shielded(199)),
    one({}, shielded(200)),
  ],
  [
    'a shield below a bucket and what runs into it',
    'tight-shield shield.limit',
    one({ algorithm: 'token-bucket', burst: 500 }, shielded(515)),
    one({ algorithm: 'token-bucket', burst: 500 }, shielded(516)),
  ],
  [
    'a shield below short windows, each full',
    'tight-shield shield.limit',
    one({ window: '3s' }, shielded(499)),
    one({ window: '3s' }, shielded(500)),
  ],
  [
    'a shield below a log and its largest plan',
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
    'a shield below what two policies of different requests may admit together',
    'tight-shield shield.limit',
    { ...several({ match: { path: '/a' } }, { match: { path: '/b' } }), ...shielded(399) },
    { ...several({ match: { path: '/a' } }, { limit: 150 }), ...shielded(300) },
  ],
  [
    'a shield by addresses, where a policy lets any number of them through',
    'tight-shield shield.key',
    { ...several({ match: { path: '/a' } }, { key: 'asn' }), ...shielded(10_000) },
    { ...several({}, { match: { path: '/a' }, key: 'asn' }), ...shielded(10_000) },
  ],
  [
    'a shield where only failures count',
    'tight-shield shield.key',
    one({ countOnly: '4xx' }, shielded(10_000)),
    { ...several({ countOnly: '4xx' }, {}), ...shielded(10_000) },
  ],
  [
    'a shield beside a price of nothing, where another policy counts',
    'tight-shield shield.key',
    {
      ...several({ cost: [{ path: '/a', cost: 0 }] }, { match: { path: '/a' }, key: 'asn' }),
      ...shielded(10_000),
    },
    one({ cost: [{ path: '/a', cost: 0 }] }, shielded(200)),
  ],
  [
    'a shield that nothing enforced asks',
    'unused-setting shield',
    one({ mode: 'shadow' }, shielded(1000)),
    { ...several({ mode: 'shadow', limit: 50 }, {}), ...shielded(1000) },
  ],
  [
    'an accepted finding that a shield does not have',
    'unused-setting shield.accept[0]',
    one({}, shielded(200, { accept: 'tight-shield' })),
    one({}, shielded(199, { accept: 'tight-shield' })),
  ],

  // no-policies
  [
    'a configuration limits nothing',
    'no-policies policies',
    { policies: [] },
    { policies: [], deny: { ip: '203.0.113.7' } },
  ],
  [
    'a policy list is left to a live document',
    'no-policies policies',
    { policies: [], allow: { ip: '203.0.113.7' }, accept: [] },
    { policies: [], live: { from: 'redis' } },
  ],

  // never-charges
  [
    'a price of nothing for every request',
    'never-charges policies[0].cost',
    priced(0),
    priced([{ method: 'GET', cost: 0 }]),
  ],
  [
    'a price of nothing by each rule, where the rules take all requests',
    'never-charges policies[0].cost',
    priced([{ method: ['GET', 'POST'], cost: 0 }], { match: { method: ['GET', 'POST'] } }),
    priced({ response: 'x-price', otherwise: 0 }),
  ],
  [
    'a price of nothing, where refusals lead to a ban',
    'never-charges policies[0].cost',
    priced(0, { penalty: { after: 3, within: '1m', ban: '1h' } }),
    priced(0, { penalty: 'manual' }),
  ],

  // unknown-plan
  [
    'a table names a plan that no policy has a limit for',
    'unknown-plan tables.customers.acme',
    planned({ acme: 'prO', globex: 'prO', initech: 'free' }),
    planned({ acme: 'pro', initech: 'free' }),
  ],
  [
    'a table that no policy looks plans up in',
    'unused-setting tables.others',
    { ...planned({ acme: 'pro' }), tables: { customers: { acme: 'pro' }, others: {} } },
    planned({}),
  ],

  // unknown-method
  [
    'a method with swapped letters',
    'unknown-method policies[0].match.method[1]',
    matching({ method: ['GET', 'PSOT'] }),
    matching({ method: ['get', 'PROPFIND', 'PATCH'] }),
  ],
  [
    'an unknown method written alone, within a not',
    'unknown-method policies[0].match.not.method',
    matching({ not: { method: 'OPTION' } }),
    matching({ not: { method: 'OPTIONS' } }),
  ],
  [
    'an unknown method in a price',
    'unknown-method policies[0].cost[0].method',
    priced([{ method: 'DELTE', cost: 2 }]),
    priced([{ method: 'DELETE', cost: 2 }]),
  ],
  [
    'an unknown method in a list',
    'unknown-method deny[1].method',
    denying({ path: '/a' }, { method: 'TRACK', path: '/b' }),
    denying({ path: '/a' }, { method: 'TRACE', path: '/b' }),
  ],

  // unlikely-duration of numbers that are surely seconds
  ...([60, 300, 900, 3600, 86_400, 604_800, 2_592_000] as const).map(
    (window): [string, string, object, object] => [
      `a window of ${window}, which is surely seconds`,
      'unlikely-duration policies[0].window',
      one({ window }),
      one({ window: window * 1000, limit: 10 }),
    ],
  ),
  [
    'a ban of 3600',
    'unlikely-duration policies[0].penalty.ban',
    one({ penalty: { after: 3, within: '1m', ban: 3600 } }),
    one({ penalty: { after: 3, within: 60_000, ban: 3_600_000 } }),
  ],

  // unused-setting
  [
    'tokens are verified for nothing',
    'unused-setting jwt',
    one({}, { jwt }),
    one({ key: 'jwt:sub' }, { jwt }),
  ],
  [
    'API keys are read by nobody',
    'unused-setting apiKeys',
    one({}, { apiKeys: { known: 'KEYS' } }),
    one({ key: 'asn', onMissingKey: { key: 'api-key' } }, { apiKeys: { known: 'KEYS' } }),
  ],
  [
    'a share of what is not counted',
    'unused-setting policies[0].localShare',
    one({ localShare: 0.5, onStoreError: 'deny' }),
    one({ localShare: 0.5 }),
  ],
  [
    'a lease on a quota of which nothing is leased',
    'unused-setting policies[0].lease',
    one({ limit: 31, lease: { max: 10, ttl: '5s' } }),
    one({ limit: 32, lease: { max: 10, ttl: '5s' } }),
  ],
  [
    'a lease on a small bucket',
    'unused-setting policies[0].lease',
    one({ algorithm: 'gcra', limit: 1000, lease: { max: 10, ttl: '5s' } }),
    one({ algorithm: 'gcra', limit: 1000, burst: 32, lease: { max: 10, ttl: '5s' } }),
  ],
  [
    'an answer to a key that is always there',
    'unused-setting policies[0].onMissingKey',
    one({
      key: ['path:id', 'method'],
      match: { path: ['/a/:id', '/b/:id/*'] },
      onMissingKey: 'skip',
    }),
    one({ key: ['path:id', 'method'], match: { path: ['/a/:id', '/b/*'] }, onMissingKey: 'skip' }),
  ],
  [
    'one of the paths is written as none is seen',
    'unused-setting policies[0].match.path[1]',
    matching({ path: ['/a', '/b/;c'] }),
    matching({ path: ['/a', '/b;c'] }),
  ],
  [
    'a not that takes nothing away',
    'unused-setting policies[0].match.not[0]',
    matching({ path: '/users/:id', not: [{ path: '/admin' }, { path: '/users/me' }] }),
    matching({ path: '/:any/:id', not: [{ path: '/admin/x' }, { path: '/users/me' }] }),
  ],
  [
    'a rule behind one that takes more',
    'unused-setting policies[0].cost[1]',
    priced([
      { path: '/a/*', cost: 2 },
      { path: '/a/b', cost: 3 },
    ]),
    priced([
      { path: '/a/b', cost: 3 },
      { path: '/a/*', cost: 2 },
    ]),
  ],
  [
    'a rule of requests that the policy does not meet',
    'unused-setting policies[0].cost[0]',
    priced([{ method: 'GET', cost: 2 }], { match: { method: 'POST' } }),
    priced([{ method: 'GET', cost: 2 }], { match: { method: ['GET', 'POST'] } }),
  ],
  [
    'a price of the rest, of which there is none',
    'unused-setting policies[0].cost.otherwise',
    priced(
      {
        rules: [
          { method: 'GET', cost: 2 },
          { method: 'POST', cost: 3 },
        ],
        otherwise: 400,
      },
      { match: { method: ['GET', 'POST'] } },
    ),
    priced({
      rules: [
        { method: 'GET', cost: 2 },
        { method: 'POST', cost: 3 },
      ],
      otherwise: 4,
    }),
  ],
  [
    'a check in parallel of what is never safe',
    'unused-setting policies[0].check',
    one({ check: 'parallel', match: { method: ['POST', 'PUT'] } }),
    one({ check: 'parallel', match: { method: ['POST', 'GET'] } }),
  ],
  [
    'a check in parallel beside a policy that is always met too, and checked before',
    'unused-setting policies[0].check',
    several({ check: 'parallel', match: { path: '/a' } }, { limit: 500 }),
    several({ check: 'parallel' }, { limit: 50, match: { path: '/a' } }),
  ],
  [
    'a check in parallel beside a policy in shadow that is always met too',
    'unused-setting policies[0].check',
    several({ check: 'parallel' }, { limit: 50, check: 'parallel', mode: 'shadow' }),
    several(
      { check: 'parallel' },
      { limit: 50, check: 'parallel', mode: 'shadow', match: { path: '/a' } },
    ),
  ],
  [
    'a longer deadline than that of a policy which is always met too',
    'unused-setting policies[0].deadline',
    several({ deadline: '1s', match: { path: '/a' } }, { limit: 500 }),
    several({ deadline: '100ms', match: { path: '/a' } }, { limit: 500 }),
  ],
  [
    'an answer for a Redis that is away which another always overrules',
    'unused-setting policies[0].onStoreError',
    several({ onStoreError: 'local', match: { path: '/a' } }, { limit: 500, onStoreError: 'deny' }),
    several({ onStoreError: 'deny', match: { path: '/a' } }, { limit: 500, onStoreError: 'local' }),
  ],
  [
    'an entry that deny overrules',
    'unused-setting allow[0]',
    { ...allowing({ ip: '198.51.100.0/24' }), deny: { ip: '198.51.0.0/16' } },
    { ...allowing({ ip: '198.51.0.0/16' }), deny: { ip: '198.51.100.0/24' } },
  ],
  [
    'an entry that another takes',
    'unused-setting deny[0]',
    denying({ ip: '198.51.100.7', path: '/a' }, { ip: '198.51.100.0/24' }),
    denying({ ip: '198.51.100.7' }, { ip: '198.51.100.0/24', path: '/a' }),
  ],
  [
    'an entry that is there twice',
    'unused-setting deny[1]',
    denying({ ip: '198.51.100.7' }, { ip: '198.51.100.7/32' }),
    denying({ ip: '198.51.100.7' }, { ip: '198.51.100.8' }),
  ],
  [
    'an entry that another takes for the same policies',
    'unused-setting allow[1]',
    allowing({ ip: '198.51.0.0/16' }, { ip: '198.51.100.0/24', policies: ['a'] }),
    allowing({ ip: '198.51.0.0/16', policies: ['b'] }, { ip: '198.51.100.0/24', policies: ['a'] }),
  ],
  [
    'the same of a long list',
    'unused-setting deny[1]',
    denying({ ip: networks }, { ip: networks.slice(7) }),
    denying({ ip: networks.slice(7) }, { ip: networks.slice(0, -7) }),
  ],
  [
    'an entry of which no request is',
    'unused-setting allow[0]',
    allowing({ path: '/a', not: { path: '/:any' } }),
    allowing({ path: '/:any', not: { path: '/a' }, ip: '198.51.100.7' }),
  ],
  [
    'an entry names a policy that meets none of its requests',
    'unused-setting allow[0].policies[1]',
    allowing({ path: '/b', policies: ['a', 'b'] }),
    allowing({ path: '/:any/b', policies: ['a', 'b'] }),
  ],
  [
    'what is accepted is not there',
    'unused-setting policies[0].accept[1]',
    one({ key: 'cookie:a', accept: ['spoofable-key', 'large-log'] }),
    one({ key: 'cookie:a', accept: ['spoofable-key'] }),
  ],
]

const found = (config: unknown) => lint(config).map(({ code, path }) => `${code} ${path}`)

describe('what is found', () => {
  test.each(table)('%s: %s', (_, finding, broken, nearMiss) => {
    expect(found(broken)).toEqual([finding])
    expect(found(nearMiss)).toEqual([])
  })

  test('each code has a configuration that is named by its defect, and a heading in docs/linter.md', async () => {
    const codes = [...findingCodes, 'duplicate-name', 'invalid'].sort()
    const shown = new Set([...table.map(([, finding]) => finding.split(' ')[0]), 'no-origin'])
    expect([...shown].sort()).toEqual(codes)
    const docs = await readFile(new URL('../../../docs/linter.md', import.meta.url), 'utf8')
    expect([...docs.matchAll(/^### (\S+)$/gm)].map(([, code]) => code).sort()).toEqual(codes)
  })

  test('the shipped configuration is clean', () => {
    expect(lint(shipped)).toEqual([])
  })

  test('in the order of the configuration, all at once', () => {
    const config: ConfigOptions = {
      jwt,
      deny: {},
      policies: [
        { ...base, window: 60, key: 'global', cost: 101 },
        { ...base, name: 'b', algorithm: 'sliding-log', limit: 5000 },
      ],
    }
    expect(found(config)).toEqual([
      'global-key policies[0].key',
      'cost-never-fits policies[0].cost',
      'unlikely-duration policies[0].window',
      'large-log policies[1].limit',
      'list-takes-all deny[0]',
      'unused-setting jwt',
    ])
  })

  test.each([null, undefined, 7, 'x', [], {}, { policies: 7 }, { policies: [null] }])(
    '%j is told as the parser tells it',
    (config) => {
      const problems = () => {
        try {
          return parseConfig(config)
        } catch (error) {
          return (error as ConfigError).problems
        }
      }
      expect(lint(config).map(({ code, path, message }) => ({ code, path, message }))).toEqual(
        (problems() as ConfigProblem[]).map(({ path, expected, got }) => ({
          code: 'invalid',
          path,
          message: `expected ${expected}, got ${got}`,
        })),
      )
    },
  )
})

test('a configuration accepts findings of its own by code, and other codes of it are unused', () => {
  expect(found({ policies: [], accept: 'no-policies' })).toEqual([])
  expect(found(one({}, { accept: 'no-policies' }))).toEqual(['unused-setting accept[0]'])
  expect(found(one({ cost: 0 }, { accept: 'never-charges' }))).toEqual([
    'never-charges policies[0].cost',
    'unused-setting accept[0]',
  ])
})

describe('the deployed Worker has to have an origin', () => {
  const worker = (config: unknown) => lintWorker(config).map(({ code, path }) => `${code} ${path}`)

  test('a configuration without one is a finding of the Worker, and none of lint', () => {
    expect(worker(one({}))).toEqual(['no-origin origin'])
    expect(found(one({}))).toEqual([])
    expect(worker(one({}, { origin: 'zone' }))).toEqual([])
  })

  test('the code no-origin accepts it, and is unused beside an origin', () => {
    expect(worker(one({}, { accept: 'no-origin' }))).toEqual([])
    expect(found(one({}, { accept: 'no-origin' }))).toEqual([])
    expect(worker(one({}, { accept: 'no-origin', origin: 'zone' }))).toEqual([
      'unused-setting accept[0]',
    ])
  })

  test('the variable ORIGIN is an origin', () => {
    const variables = { ORIGIN: 'https://origin.example.com' }
    expect(lintWorker(one({}), variables)).toEqual([])
  })

  test('other findings, and the problems of the parser, are the same as of lint', () => {
    const config = one({ cost: 0 }, { origin: 'zone' })
    expect(lintWorker(config)).toEqual(lint(config))
    expect(lintWorker({})).toEqual(lint({}))
  })
})

describe('the hint of a problem says what to write instead', () => {
  test.each<[object, string, string | RegExp]>([
    [{ polices: [], policies: [] }, 'polices', 'Did you mean policies?'],
    [
      one({ algorithm: 'sliding_window' as never }),
      'policies[0].algorithm',
      "Did you mean 'sliding-window'?",
    ],
    [one({ windw: '1m' } as never), 'policies[0].windw', 'Did you mean window?'],
    [matching({ path: /^\/api/ as never }), 'policies[0].match.path', /regular expressions/],
    [
      matching({ path: '/api/**' }),
      'policies[0].match.path',
      "Write '/api/*': it covers every path below /api.",
    ],
    [
      matching({ path: '/api/*/users' }),
      'policies[0].match.path',
      "Write '/api/:name/users': a name takes one segment, and '*' stands only at the end.",
    ],
    [
      matching({ path: 'login' }),
      'policies[0].match.path',
      "Write '/login': a path begins with '/'.",
    ],
    [
      matching({ path: ['/a', '/b?c=1'] }),
      'policies[0].match.path[1]',
      "Write '/b': a policy does not see the query in a path.",
    ],
    [one({ key: 'body:x' as never }), 'policies[0].key', /^No part reads the body of a request\./],
    [one({ key: 'apikey' as never }), 'policies[0].key', "Did you mean 'api-key'?"],
    [one({ key: 'user' as never }), 'policies[0].key', ''],
    [one({ key: ['ip', 'jwt:sub'] }), 'policies[0].key', /^Add jwt beside policies/],
    [
      one({}, { jwt: { secret: 's3cr3tVALUE0123456789' } }),
      'jwt.secret',
      /wrangler secret put JWT_SECRET/,
    ],
  ])('%j', (config, path, hint) => {
    const problem = lint(config).find((one) => one.path === path)
    expect(problem).toMatchObject({ code: 'invalid' })
    if (typeof hint === 'string') expect(problem!.hint).toBe(hint)
    else expect(problem!.hint).toMatch(hint)
  })
})

describe('a message names what and where', () => {
  test.each<[ConfigOptions | object, string]>([
    [
      { policies: [{ ...base, name: 'old', match: { path: '/a', not: { path: '/*' } } }] },
      '"old" meets no request: its not takes away all that its match names.',
    ],
    [
      allowing({ name: 'office', path: '/api/*', method: 'GET' }, { method: 'POST' }),
      '"b" limits no request: allow[0] "office" and allow[1] let all that it names skip it.',
    ],
    [
      several({ name: 'wide' }, { name: 'narrow', limit: 50 }),
      '"wide" never is the one to refuse: "narrow" counts all of its requests by the same key, 50 in 1m.',
    ],
    [
      priced(20, { limit: 50, limits: { free: 10, pro: 100 }, plan: 'country' }),
      '"a" never admits a request that costs 20: its smallest limit is 10.',
    ],
    [
      priced(2, { algorithm: 'gcra' }),
      '"a" never admits a request that costs 2: its burst is 1, unless it says more.',
    ],
    [one({ window: 60 }), '"a" has a window of 60 ms.'],
    [
      denying({ name: 'abuse', ip: ['2001:db8::7', '2001:db8::8'] }),
      'deny[0] "abuse" refuses 2001:db8::7 and 1 more, and the client has other addresses in the same /64.',
    ],
    [
      one({ key: ['ip', 'cookie:sid'] }),
      '"a" counts by cookie:sid, which is whatever a client says: each value that it makes up is a new quota.',
    ],
    [
      allowing({ header: { 'X-Internal': 'yes' } }),
      'allow[0] lets whoever sends x-internal skip limits.',
    ],
    [
      one({ key: 'api-key', onMissingKey: 'skip' }, { apiKeys: { known: 'KEYS' } }),
      '"a" does not meet a client that leaves out api-key, and no other policy is sure to.',
    ],
    [
      one({}, shielded(100)),
      'The shield refuses after 100 requests in 10 s, of which "a" may admit 200.',
    ],
    [
      one({ countOnly: 401 }, shielded(100)),
      'The shield counts the requests of "a" by its own key, and no policy bounds what it lets pass by that: the shield may be the one to refuse.',
    ],
    [
      matching({ method: 'PSOT' }),
      '"a" names the method PSOT, which is not a registered HTTP method.',
    ],
    [
      planned({ acme: 'prO', globex: 'prO' }),
      'The table customers names the plan "prO" (2 entries), and no policy that uses the table has it in its limits.',
    ],
    [priced(0), '"a" never charges a request, so it never refuses one.'],
    [one({ window: 3600 }), '"a" has a window of 3600 ms, which is 3.6 s.'],
    [login(), '"a" guards /login, and lets every attempt pass while Redis is away.'],
    [
      several({ name: 'fast', deadline: '1s', match: { path: '/a' } }, { limit: 500 }),
      '"fast" never waits so long: "b", which meets all of its requests too, has a deadline of 300 ms, and the shortest counts.',
    ],
  ])('%j', (config, message) => {
    const findings = lint(config)
    expect(findings.map((finding) => finding.message)).toEqual([message])
    expect(findings[0]!.hint).toMatch(/^[A-Z].*[.?]$/)
  })
})

describe('what is accepted is not found', () => {
  test('of a policy, by its codes; the others stay', () => {
    const accept = ['global-key', 'cost-never-fits'] as const
    const config = one({ key: 'global', cost: 101, window: 60, accept: [...accept] })
    expect(found(config)).toEqual(['unlikely-duration policies[0].window'])
    expect(found(one({ key: 'global', accept: 'global-key' }))).toEqual([])
  })

  test('of an entry of a list', () => {
    expect(found({ ...one({}), deny: { accept: 'list-takes-all' } })).toEqual([])
    const monitor = { header: { 'user-agent': 'monitor/*' }, accept: 'spoofable-list' } as const
    expect(found(allowing(monitor, { ip: '198.51.100.7' }))).toEqual([])
  })

  test('of one policy, not of another', () => {
    const config = several({ key: 'cookie:a', accept: 'spoofable-key' }, { key: 'cookie:b' })
    expect(found(config)).toEqual(['spoofable-key policies[1].key[0]'])
  })

  test('what the parser finds is never accepted', () => {
    const config = { policies: [{ ...base, accept: 'duplicate-name' }] }
    expect(found(config)).toEqual(['invalid policies[0].accept'])
  })
})

test('it is a public name, and works on what defineConfig hands back', () => {
  expect(library.lint).toBe(lint)
  expect(lint(defineConfig({ policies: [{ ...base, key: (c) => String(c) }] }))).toEqual([])
})

test('the Worker does not carry it', async () => {
  const reached = new Set<string>()
  const walk = async (url: URL) => {
    if (reached.has(url.href) || !url.href.endsWith('.ts')) return
    reached.add(url.href)
    const text = await readFile(url, 'utf8')
    for (const [, target] of text.matchAll(/ from '(\.[^']+)'/g)) await walk(new URL(target!, url))
  }
  await walk(new URL('../../../src/worker.ts', import.meta.url))
  expect(reached.size).toBeGreaterThan(20)
  expect([...reached].filter((file) => /\/src\/lint[./]/.test(file))).toEqual([])
})

test('a policy that bans, or has plans, outcomes or a calendar of its own, is not redundant', () => {
  const found = (change: object, other: object = {}) =>
    lint(several({ name: 'wide', ...change }, { name: 'narrow', limit: 50, ...other })).map(
      ({ code }) => code,
    )
  const plans = { limits: { pro: 10 }, plan: 'country' }
  const day = { algorithm: 'fixed-window', window: 'day' }
  expect(found({})).toEqual(['redundant-policy'])
  expect(found({ penalty: { after: 3, within: '1m', ban: '1h' } })).toEqual([])
  expect(found(plans)).toEqual([])
  expect(found({}, { ...plans, limits: { pro: 5000 } })).toEqual([])
  expect(found({}, { countOnly: 401 })).toEqual([])
  expect(found({ countOnly: 401 }, { countOnly: 401 })).toEqual(['redundant-policy'])
  expect(found(day, { ...day, timeZone: 'Europe/Berlin' })).toEqual([])
  expect(found(day, day)).toEqual(['redundant-policy'])
})

test('tokens that tell a plan are verified for something', () => {
  const options = one({ limits: { pro: 10 }, plan: 'jwt:plan' }, { jwt })
  expect(lint(options).map(({ code }) => code)).not.toContain('unused-setting')
})
