import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sha256 } from '../../src/core/base/digest.ts'
import { type ConfigFolder, configFolder, explain, root } from '../support/dev-command.ts'

let configs: ConfigFolder
beforeAll(async () => {
  configs = await configFolder()
})
afterAll(() => configs.remove())

let count = 0
/** Writes a configuration. Returns what `sluice explain` prints about it. */
async function configured(text: string) {
  const file = await configs.write(`${count++}`, text)
  return async (args: string, env?: Record<string, string>) =>
    (await explain(`--config ${file} ${args}`, env)).stdout
}
const notesOf = (json: string) => JSON.parse(json).notes

test('sluice explain shows the units that a request must leave free.', async () => {
  const output = await configured(`export default {
      policies: [
        { name: 'shop', limit: 10, window: '1s', key: 'host', reserve: [{ match: { path: '/checkout/*' }, share: 0 }, { share: 0.25 }] },
      ],
    }`)
  expect(await output('--path /a')).toContain('cost   1, leaves 3 of 10 units free\n')
  expect(await output('--path /checkout/pay')).toContain('cost   1\n')
})

test('sluice explain shows the claim that may set a limit, and the source of the limit in force.', async () => {
  const output =
    await configured(`import { jwt } from ${JSON.stringify(`${root}src/features/jwt/index.ts`)}
      export default {
      use: [jwt({ secret: 'JWT_SECRET' })],
      policies: [
        { name: 'user', limit: { claim: 'rate', max: 50, otherwise: 5 }, window: '1s', key: 'jwt:sub', limits: { pro: 9 }, plan: 'query:plan', overrides: true },
      ],
    }`)
  expect(await output('--path /')).toContain(
    'limit  5 (no claim rate, no plan) per 1s, sliding-window, operators may set another limit',
  )
  expect(await output('--path /?plan=pro')).toContain(
    'limit  9 (no claim rate, of the plan) per 1s, ',
  )
})

test('sluice explain verifies the credentials that conditions read, and says why one does not match.', async () => {
  const output =
    await configured(`import { jwt } from ${JSON.stringify(`${root}src/features/jwt/index.ts`)}
      export default {
      use: [jwt({ secret: 'JWT_SECRET' })],
      apiKeys: { known: 'API_KEYS' },
      policies: [
        { name: 'anonymous', limit: 5, window: '1s', match: { apiKey: false } },
        { name: 'user', limit: 5, window: '1s', match: { jwt: true } },
        { name: 'others', limit: 5, window: '1s', match: { not: [{ jwt: true }, { apiKey: true }] } },
      ],
    }`)
  const env = {
    API_KEYS: await sha256('a-key'),
    JWT_SECRET: 'a secret of at least 32 bytes, or so',
  }
  const shown = await output("--path / --header 'x-api-key: a-key'", env)
  expect(shown).toContain(
    'the request has a known API key, the policy matches requests without one',
  )
  expect(shown).toContain(
    'the request is without a verified token, the policy matches requests with one',
  )
  expect(shown).toContain('match.not[1] excludes the request (with a known API key)')
})

test('sluice explain shows a request without a policy, a refusal for a missing key, and a path of the Worker itself.', async () => {
  const output = await configured(`export default {
      caseSensitivePaths: true,
      allow: { path: '/Health' },
      policies: [
        { name: 'api', limit: 5, window: '1s', key: ['ip', 'cookie:sid'], onMissingKey: 'refuse', match: { path: '/*' } },
        { name: 'trial', limit: 5, window: '1s', key: 'query:q', onMissingKey: 'refuse', mode: 'shadow', match: { method: 'GET' } },
      ],
    }`)
  expect(
    await output('--path /Health'),
  ).toBe(`GET https://www.example.com/Health from an unknown address

2 of 2 policies do not apply because of allow[0]. No policy applies, so the request passes.

applies  policy  limit, key and cost, or why the policy does not apply
no       api     allow[0] exempts the request
no       trial   allow[0] exempts the request
`)
  expect(
    await output('--path /health --ip 203.0.113.7 --cookie a=b'),
  ).toBe(`GET https://www.example.com/health from 203.0.113.7

The policy "api" refuses the request with 403, since the key part cookie:sid is missing. Nothing is charged.

applies  policy  limit, key and cost, or why the policy does not apply
no       api     the key part cookie:sid is missing (onMissingKey: refuse)
no       trial   the key part query:q is missing (onMissingKey: refuse, not enforced in shadow)
`)
  const args = `--ip 203.0.113.7 --cookie a=b --cookie sid=7 --header 'cookie: c=d'`
  expect(
    await output(`--path /%5Fsluice/x?q=%1b[31m ${args}`),
  ).toBe(`GET https://www.example.com/%5Fsluice/x?q=%1b[31m from 203.0.113.7
Policies see the path /%5Fsluice/x as /_sluice/x.

No entry of allow or deny matches the request.

applies  policy  limit, key and cost, or why the policy does not apply
yes      api     limit  5 per 1s, sliding-window
                 key    ip = 203.0.113.7, cookie:sid = 7
                 cost   1
yes      trial   limit  5 per 1s, sliding-window, in shadow
                 key    query:q = [31m
                 cost   1

In Redis, the general script decides.

Note: the Worker itself responds to paths under /_sluice/, before any policy applies.
`)
})

test('sluice explain shows each way in which origins may read a path.', async () => {
  const { stdout } = await explain('--path /Login/x%2F.. --method POST')
  expect(stdout).toContain(
    'Policies see the path /Login/x%2F.. as /login. Some origins may read it as /login/x%2f.. or /login/x%2f; the strictest reading counts.\n',
  )
  expect(stdout).toMatch(/^yes {6}login /m)
})

test('sluice explain shows each quota that a path names, and the credentials that name none.', async () => {
  const output = await configured(`export default {
      apiKeys: { known: 'EXPLAIN_KEYS' },
      policies: [
        { name: 'user', limit: 5, window: '1s', key: 'path:id', match: { path: '/users/:id/*' } },
        { name: 'session', limit: 5, window: '1s', key: 'cookie:sid', onMissingKey: 'skip' },
        { name: 'customer', limit: 5, window: '1s', key: 'api-key', onMissingKey: 'refuse' },
      ],
    }`)
  const sent = `--cookie sid=1 --cookie sid=2 --header 'x-api-key: unknown'`
  const env = { EXPLAIN_KEYS: '0'.repeat(64) }
  const shown = await output(`--path /users/8/..%2Fa1%2Fx ${sent}`, env)
  expect(shown).toBe(`GET https://www.example.com/users/8/..%2Fa1%2Fx from an unknown address
Policies see the path /users/8/..%2Fa1%2Fx as /users/a1/x. Some origins may read it as /users/8/..%2fa1%2fx; the strictest reading counts.

The policy "customer" refuses the request with 403, since the key part api-key is unverified. Nothing is charged.

applies  policy    limit, key and cost, or why the policy does not apply
yes      user      limit  5 per 1s, sliding-window
                   key    path:id = a1
                   cost   1
yes      user      limit  5 per 1s, sliding-window
                   key    path:id = 8
                   cost   1
yes      session   limit  5 per 1s, sliding-window
                   key    cookie:sid is unreadable (shared quota)
                   cost   1
no       customer  the key part api-key is unverified (onMissingKey: refuse)

In Redis, the general script decides.
`)
})

test('A note reports that the shield counts the request first.', async () => {
  const output = await configured(`export default {
        shield: { binding: 'SHIELD', limit: 200, period: '10s', key: ['ip', (c) => c.get('user')] },
        policies: [{ name: 'a', limit: 5, window: '1m', match: { path: '/a' } }],
      }`)
  expect(await output('--path /a --ip 192.0.2.1')).toContain(
    'Note: the shield counts the request before Redis does, by ip = 192.0.2.1, function = (result of the function): 200 per 10s.',
  )
  expect(await output('--path /b --ip 192.0.2.1')).not.toContain('shield')
})

test('sluice explain shows the limit of a plan, of a calendar window and of concurrent requests.', async () => {
  const output = await configured(`export default {
      tables: { customers: { acme: 'pro' } },
      policies: [
        { name: 'plan', limit: 10, limits: { pro: 500 }, plan: { key: 'header:x-customer', table: 'customers' }, window: '1m' },
        { name: 'app', limit: 10, limits: { pro: 500 }, plan: (c) => c.get('plan'), window: '1m' },
        { name: 'month', algorithm: 'fixed-window', limit: 9, window: 'month', timeZone: 'Europe/Berlin' },
        { name: 'at-once', algorithm: 'concurrency', limit: 3, window: '1h' },
      ],
    }`)
  const first = async (customer: string) =>
    (await output(`--path / --ip 203.0.113.7 --header 'x-customer: ${customer}'`))
      .split('\n')
      .filter((line) => line.startsWith('yes'))
  expect(await first('acme')).toEqual([
    'yes      plan     limit  500 (of the plan) per 1m, sliding-window',
    'yes      app      limit  10 (no plan) per 1m, sliding-window',
    'yes      month    limit  9 per month (Europe/Berlin), fixed-window',
    'yes      at-once  limit  3 in flight, each for up to 1h, concurrency',
  ])
  expect((await first('globex'))[0]).toBe(
    'yes      plan     limit  10 (no plan) per 1m, sliding-window',
  )
})

test('If a policy applies, a note names the namespace and the keys in Redis.', async () => {
  const output = await configured(`export default {
      namespace: 'shop',
      allow: { path: '/health' },
      policies: [{ name: 'per-ip', limit: 5, window: '1m' }],
    }`)
  const notes = async (path: string) => notesOf(await output(`--path ${path} --json`))
  expect(await notes('/')).toEqual([
    'the counters are in the namespace shop; their keys in Redis are sluice:1:shop:{…}',
  ])
  expect(await notes('/health')).toEqual([])
})

test('A note reports how many slots of a Redis Cluster a request may need.', async () => {
  const output =
    await configured(`import { cluster } from ${JSON.stringify(`${root}/src/features/cluster/index.ts`)}
    export default {
      use: [cluster()],
      policies: [
        { name: 'per-ip', limit: 5, window: '1m' },
        { name: 'tenant', limit: 5, window: '1m', key: 'header:x-a', onMissingKey: 'skip' },
      ],
    }`)
  const notes = async (headers = '') => notesOf(await output(`--path / --json ${headers}`))
  expect(await notes()).toEqual([])
  expect(await notes('--header x-a:1')).toEqual([
    'the 2 keys may be in 2 slots of the cluster, with one call of the script for each slot',
  ])
})

describe('a body', () => {
  const BODIES = `import { bodies } from ${JSON.stringify(`${root}/src/features/bodies/index.ts`)}
    export default {
      policies: [
        { name: 'tools', limit: 5, window: '1m', match: { body: { method: 'tools/call' } }, key: 'body:params.name', onMissingKey: 'refuse' },
        { name: 'tokens', limit: 500, window: '1m', key: 'global', cost: { body: 'max_tokens', otherwise: 10, max: 100 } },
      ],
      use: [bodies()],
    }`
  let output: Awaited<ReturnType<typeof configured>>
  beforeAll(async () => {
    output = await configured(BODIES)
  })

  test('sluice explain --body shows the keys and costs of a batch.', async () => {
    const call = (name: string) => ({ method: 'tools/call', params: { name } })
    const batch = JSON.stringify([call('a'), call('b'), call('a')])
    expect(
      await output(`--path /mcp --body '${batch}'`),
    ).toBe(`POST https://www.example.com/mcp from an unknown address

No entry of allow or deny matches the request.

applies  policy  limit, key and cost, or why the policy does not apply
yes      tools   limit  5 per 1m, sliding-window
                 key    body:params.name = a
                 cost   2
yes      tools   limit  5 per 1m, sliding-window
                 key    body:params.name = b
                 cost   1
yes      tokens  limit  500 per 1m, sliding-window
                 key    global
                 cost   30

In Redis, the general script decides.
`)
  })

  test.each([
    [
      '{"method":"ping","max_tokens":70}',
      'no       tools   the body has other values, the policy matches method tools/call',
    ],
    [
      '{"method":"ping","method":"tools/call"}',
      'since the key part body:params.name is unreadable',
      'Note: the body cannot be read: it has two members "method" in one object.',
    ],
    [
      `{}' --header 'content-type: text/plain`,
      'Note: the body cannot be read: its type is not JSON.',
    ],
  ])(
    'sluice explain shows why the body %s does not match or cannot be read.',
    async (body, ...lines) => {
      const shown = await output(`--path /mcp --body '${body}'`)
      for (const line of lines) expect(shown).toContain(line)
    },
  )
})
