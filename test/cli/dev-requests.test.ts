/** The requests that `sluice dev` prints: each works as it is printed. */
import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { tries } from '../../cli/dev/banner.ts'
import { describe } from '../../cli/dev/describe.ts'
import type { ConfigOptions, KeySource, PolicyOptions } from '../../src/core/config/options.ts'
import { bodies } from '../../src/features/bodies/index.ts'
import { jwt } from '../../src/features/jwt/index.ts'
import { createMatcher } from '../support/create-matcher.ts'
import { parseCurl, unfolded } from '../support/curl.ts'

const URL_OF_DEV = 'http://127.0.0.1:8787'
const TOKENS = { api: 'api', operate: 'operate' }

/** The commands for the policies, and the comment of each. */
function printed(options: ConfigOptions): [command: string, about: string][] {
  const text = unfolded(tries({ ...describe(options), ask: undefined }, URL_OF_DEV, TOKENS))
  const pairs = [...text.matchAll(/^ {2}# (.*)\n {2}(curl .*)$/gm)]
  return pairs.map(([, about, command]) => [command!, about!])
}

const one = (policy: Partial<PolicyOptions>, more: object = {}): ConfigOptions => ({
  origin: 'zone',
  ...more,
  policies: [{ name: 'one', limit: 5, window: '1m', ...policy } as PolicyOptions],
})

const values = fc.constantFrom<true | string | string[]>(true, 'free', ['a b', "it's"], 'ä')
const key = fc.constantFrom<KeySource>(
  ...(['ip', 'api-key', 'header:x-user', 'cookie:session', 'query:q', 'path', 'global'] as const),
)
const match = fc.record(
  {
    path: fc.constantFrom('/a', '/api/*', '/users/:id', ['/x', '/y']),
    method: fc.constantFrom('GET', 'POST', ['PUT', 'DELETE']),
    host: fc.constantFrom('a.test', '*.b.test'),
    header: fc.record({ 'x-plan': values.filter((value) => value !== 'ä') }),
    query: fc.record({ action: values }),
    apiKey: fc.constant(true),
  },
  { requiredKeys: [] },
)
const apiKeys = fc.record(
  {
    from: fc.constantFrom('bearer', 'header:x-key', 'cookie:key', 'query:key'),
    known: fc.constant('API_KEYS'),
  },
  { requiredKeys: ['known'] },
)

test('Each printed request meets the condition of its policy, and has its key.', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.record({ match, key: fc.uniqueArray(key, { minLength: 1, maxLength: 2 }) }),
      apiKeys,
      async (policy, apiKeys) => {
        const options = one(policy as Partial<PolicyOptions>, { apiKeys })
        const matcher = createMatcher(options)
        const commands = printed(options)
        expect(commands.length).toBeGreaterThan(0)
        for (const [command] of commands) {
          const { urls, method, headers } = parseCurl(command)
          const [url] = urls
          const { Host = '127.0.0.1', ...rest } = headers
          const { policies } = await matcher(
            url!.replace('127.0.0.1:8787', Host),
            { method, headers: rest },
            { env: { API_KEYS: createHash('sha256').update('KEY').digest('hex') } },
          )
          expect(policies.length > 0).toBe(true)
        }
      },
    ),
  )
})

test('A request with a body has the fields of the condition and of the key.', () => {
  const body = { method: 'tools/call' }
  const options = one({ match: { path: '/mcp', body }, key: 'body:params.name' } as object, {
    use: [bodies()],
  })
  expect(printed(options)[0]![0]).toBe(
    `curl -i -X POST ${URL_OF_DEV}/mcp -H 'Content-Type: application/json' -d '{"method":"tools/call","params":{"name":"alice"}}'`,
  )
})

test.each([
  [{ key: 'api-key' }, { apiKeys: { known: 'API_KEYS' } }, 'write a key of API_KEYS for KEY'],
  [
    { key: 'jwt:sub' },
    { use: [jwt({ secret: 'JWT_SECRET' })] },
    'write a JSON Web Token for TOKEN',
  ],
])('A request with %j says what to write into it.', (policy, more, text) => {
  const commands = printed(one(policy as Partial<PolicyOptions>, more))
  expect(commands).toHaveLength(2)
  for (const [, about] of commands) expect(about).toContain(text)
})

test.each([
  ['that successful requests do not use up', { countOnly: [401] }],
  ['that refuses nothing', { mode: 'shadow' }],
  ['with a function as its key', { key: () => 'x' }],
  ['for writing requests', { match: { method: 'POST' } }],
])('No printed request waits for the refusal of a policy %s.', (_, policy) => {
  const text = JSON.stringify(printed(one(policy as Partial<PolicyOptions>)))
  expect(text).not.toContain('refuses them')
})
