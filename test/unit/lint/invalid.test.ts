/** Configurations that do not parse. */
import { expect, test } from 'vitest'
import type { ConfigError, ConfigProblem } from '../../../src/core/base/errors.ts'
import { parseConfig } from '../../../src/core/config/parse.ts'
import { cluster } from '../../../src/features/cluster/index.ts'
import { lint } from '../../../src/lint/lint.ts'
import { explained } from '../../../src/lint/problems.ts'
import { base, found, matching, one, several, testFindings } from '../../support/lint.ts'

testFindings({
  'Two policies share a name.': [
    'duplicate-name policies[1].name',
    several({ name: 'a' }, { name: 'a', match: { path: '/x' } }),
    several({ name: 'a' }, { name: 'A', match: { path: '/x' }, limit: 5 }),
  ],
  'A limit is 0.': ['invalid policies[0].limit', one({ limit: 0 }), one({ limit: 1 })],
})

test.each([null, undefined, 7, 'x', [], {}, { policies: 7 }, { policies: [null] }])(
  'The linter reports the problems of the parser for the configuration %j.',
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

test('A configuration cannot accept the problems of the parser.', () => {
  const config = { policies: [{ ...base, accept: 'duplicate-name' }] }
  expect(found(config)).toEqual(['invalid policies[0].accept'])
})

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
    "Write '/api/:name/users': a parameter matches one segment, and '*' is allowed only at the end.",
  ],
  [
    matching({ path: 'login' }),
    'policies[0].match.path',
    "Write '/login': a path starts with '/'.",
  ],
  [
    matching({ path: ['/a', '/b?c=1'] }),
    'policies[0].match.path[1]',
    "Write '/b': a path does not include the query.",
  ],
  [
    matching({ path: 'https://api.example.com:443/v1/*?a=b' }),
    'policies[0].match.path',
    "Write path: '/v1/*' and host: 'api.example.com': a path has no scheme and no host.",
  ],
  [
    matching({ path: 'http://example.com' }),
    'policies[0].match.path',
    "Write path: '/' and host: 'example.com': a path has no scheme and no host.",
  ],
  [one({ match: '/login' } as never), 'policies[0].match', "Write match: { path: '/login' }."],
  [
    one({}, { allow: '10.0.0.0/8' } as never),
    'allow',
    "Write allow: [{ name: 'office', ip: '10.0.0.0/8' }].",
  ],
  [
    one({}, { deny: ['2001:db8::1'] } as never),
    'deny[0]',
    "Write deny: [{ name: 'office', ip: '2001:db8::1' }].",
  ],
  [one({ max: 5 } as never), 'policies[0].max', 'Write limit: the units in a window.'],
  [one({ windowMs: 5 } as never), 'policies[0].windowMs', /^Write window: '1m'/],
  [one({ duration: 5 } as never), 'policies[0].duration', /milliseconds, and not in seconds/],
  [one({ keyGenerator: () => 'a' } as never), 'policies[0].keyGenerator', /^Write key: 'ip'/],
  [one({ path: '/a' } as never), 'policies[0].path', "Write match: { path: '/api/*' }."],
  [one({ standardHeaders: true } as never), 'policies[0].standardHeaders', /^Write headers: /],
  [one({}, { policy: [] } as never), 'policy', 'Write policies: a list of policies.'],
  [one({}, { limits: {} } as never), 'limits', /^Write policies: a list\. Only limits\(\) /],
  [
    one({}, { standardHeaders: 'draft-8' } as never),
    'standardHeaders',
    /^Write headers: 'draft-11'/,
  ],
  [one({}, { shards: ['a', 'b'] } as never), 'shards', /^Write use: \[cluster\(\)\]/],
  [one({}, { constructor: 1 } as never), 'constructor', ''],
  [one({ algorithm: 'leaky-bucket' as never }), 'policies[0].algorithm', "Write 'gcra'."],
  [one({ algorithm: 'Bucket' as never }), 'policies[0].algorithm', "Write 'token-bucket'."],
  [
    one({ algorithm: 'slidingWindowLog' as never }),
    'policies[0].algorithm',
    "Write 'sliding-log'.",
  ],
  [one({ algorithm: 'semaphore' as never }), 'policies[0].algorithm', "Write 'concurrency'."],
  [
    one({ algorithm: 'tokenBucket' as never }),
    'policies[0].algorithm',
    "Did you mean 'token-bucket'?",
  ],
  [one({}, { headers: 'draft-8' as never }), 'headers', /^Write 'draft-11'/],
  [one({}, { headers: ['draft-7', 'draft-10'] as never }), 'headers[1]', /^Write 'draft-11'/],
  [one({}, { headers: 'draft-12' as never }), 'headers', "Did you mean 'draft-11'?"],
  [one({ window: '1 minute' as never }), 'policies[0].window', "Write '1m'."],
  [one({ window: '60 sec' as never }), 'policies[0].window', "Write '60s'."],
  [one({ window: '60' as never }), 'policies[0].window', /^Write '60s'/],
  [one({ window: '1H' as never }), 'policies[0].window', "Write '1h'."],
  [one({ window: 'per hour' as never }), 'policies[0].window', "Write '1h'."],
  [
    one({ window: '1 day' as never }),
    'policies[0].window',
    /^Write '1d', or 'day' for calendar days/,
  ],
  [one({ window: '1 month' as never }), 'policies[0].window', /^Write window: 'month'/],
  [one({ window: 'often' as never }), 'policies[0].window', ''],
  [one({}, { deadline: '300 milliseconds' as never }), 'deadline', "Write '300ms'."],
  [one({ key: 'body:x' }), 'policies[0].key', 'Write use: [bodies()] beside policies.'],
  [one({ key: 'body' as never }), 'policies[0].key', /^Write the path of a value of the JSON body/],
  [one({ key: 'apikey' as never }), 'policies[0].key', "Did you mean 'api-key'?"],
  [one({ key: 'user' as never }), 'policies[0].key', ''],
  [
    one({ key: ['ip', 'jwt:sub'] }),
    'policies[0].key',
    "Write use: [jwt({ secret: 'JWT_SECRET' })] beside policies.",
  ],
  [
    one({}, { apiKeys: { known: 's3cr3tVALUE0123456789' } }),
    'apiKeys.known',
    /wrangler secret put API_KEYS/,
  ],
  [
    one({}, { cluster: cluster() } as never),
    'cluster',
    "Write use: [cluster()] beside policies, with import { cluster } from 'sluice/features'.",
  ],
])('The hint for %j at %s says what to write instead.', (config, path, hint) => {
  const problem = lint(config).find((one) => one.path === path)
  expect(problem).toMatchObject({ code: 'invalid' })
  if (typeof hint === 'string') expect(problem!.hint).toBe(hint)
  else expect(problem!.hint).toMatch(hint)
})

test('The hint for a secret of jwt names its usual variable.', () => {
  const problem = { path: 'jwt.secret', expected: 'the name of a variable', got: '"a b"' }
  expect(explained(problem).hint).toMatch(/wrangler secret put JWT_SECRET$/)
})
