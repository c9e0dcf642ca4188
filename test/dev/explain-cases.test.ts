import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type ConfigFolder, configFolder, explain } from '../support/dev-command.ts'

let configs: ConfigFolder
let write: ConfigFolder['write']
beforeAll(async () => {
  configs = await configFolder()
  write = configs.write
})
afterAll(() => configs.remove())

describe('npm run explain of special cases', () => {
  test('npm run explain shows a request without a policy, a refusal for a missing key, and a path of the Worker itself.', async () => {
    const file = await write(
      'refuse',
      `export default {
      caseSensitivePaths: true,
      allow: { path: '/Health' },
      policies: [
        { name: 'api', limit: 5, window: '1s', key: ['ip', 'cookie:sid'], onMissingKey: 'refuse', match: { path: '/*' } },
        { name: 'trial', limit: 5, window: '1s', key: 'query:q', onMissingKey: 'refuse', mode: 'shadow', match: { method: 'GET' } },
      ],
    }`,
    )
    const said = async (...args: string[]) => (await explain(['--config', file, ...args])).stdout
    expect(
      await said('--path', '/Health'),
    ).toBe(`GET https://www.example.com/Health from an unknown address

allow[0] lets it skip 2 of 2 policies. It meets no policy: it passes.

not met  api    allow[0] skips it
not met  trial  allow[0] skips it
`)
    expect(
      await said('--path', '/health', '--ip', '203.0.113.7', '--cookie', 'a=b'),
    ).toBe(`GET https://www.example.com/health from 203.0.113.7

403: "api" refuses it, since cookie:sid is missing. Nothing is counted.

not met  api    key: cookie:sid is missing → refuse
not met  trial  key: query:q is missing → skip (in shadow)
`)
    const args = [
      '--ip',
      '203.0.113.7',
      '--cookie',
      'a=b',
      '--cookie',
      'sid=7',
      '--header',
      'cookie: c=d',
    ]
    expect(
      await said('--path', '/%5Fsluice/x?q=%1b[31m', ...args),
    ).toBe(`GET https://www.example.com/%5Fsluice/x?q=%1b[31m from 203.0.113.7
The path /%5Fsluice/x is seen as /_sluice/x.

No list names it.

met      api    5 in 1s, sliding-window
                key   ip = 203.0.113.7, cookie:sid = 7
                cost  1
met      trial  5 in 1s, sliding-window, in shadow
                key   query:q = "\\u001b[31m"
                cost  1

Note: the Worker answers paths under /_sluice/ itself, before any policy.
`)
  })

  test('npm run explain shows each way in which origins may read a path.', async () => {
    const { stdout } = await explain(['--path', '/Login/x%2F..', '--method', 'POST'])
    expect(stdout).toContain(
      'The path /Login/x%2F.. is seen as /login, and by some origins as /login/x%2f..: the strictest counts.\n',
    )
    expect(stdout).toMatch(/^met {6}login /m)
  })

  test('npm run explain shows each quota that a path names, and the credentials that name none.', async () => {
    const file = await write(
      'quotas',
      `export default {
      apiKeys: { known: 'EXPLAIN_KEYS' },
      policies: [
        { name: 'user', limit: 5, window: '1s', key: 'path:id', match: { path: '/users/:id/*' } },
        { name: 'session', limit: 5, window: '1s', key: 'cookie:sid', onMissingKey: 'skip' },
        { name: 'customer', limit: 5, window: '1s', key: 'api-key', onMissingKey: 'refuse' },
      ],
    }`,
    )
    const sent = ['--cookie', 'sid=1', '--cookie', 'sid=2', '--header', 'x-api-key: unknown']
    const { stdout } = await explain(
      ['--config', file, '--path', '/users/8/..%2Fa1%2Fx', ...sent],
      { EXPLAIN_KEYS: '0'.repeat(64) },
    )
    expect(stdout).toBe(`GET https://www.example.com/users/8/..%2Fa1%2Fx from an unknown address
The path /users/8/..%2Fa1%2Fx is seen as /users/a1/x, and by some origins as /users/8/..%2fa1%2fx: the strictest counts.

403: "customer" refuses it, since api-key is unverified. Nothing is counted.

met      user      5 in 1s, sliding-window
                   key   path:id = a1
                   cost  1
met      user      5 in 1s, sliding-window
                   key   path:id = 8
                   cost  1
met      session   5 in 1s, sliding-window
                   key   cookie:sid is unreadable → share
                   cost  1
not met  customer  key: api-key is unverified → refuse
`)
  })

  test('A note says that a shield counts the request first.', async () => {
    const file = await write(
      'shield',
      `export default {
        shield: { binding: 'SHIELD', limit: 200, period: '10s', key: ['ip', (c) => c.get('user')] },
        policies: [{ name: 'a', limit: 5, window: '1m', match: { path: '/a' } }],
      }`,
    )
    const told = async (path: string) =>
      (await explain(['--config', file, '--path', path, '--ip', '192.0.2.1'])).stdout
    expect(await told('/a')).toContain(
      'Note: before Redis the shield counts it, by ip = 192.0.2.1, function = (what the function returns): 200 in 10s.',
    )
    expect(await told('/b')).not.toContain('shield')
  })

  test('npm run explain shows the limit of a plan, of a calendar window and of concurrent requests.', async () => {
    const file = await write(
      'acting',
      `export default {
      tables: { customers: { acme: 'pro' } },
      policies: [
        { name: 'plan', limit: 10, limits: { pro: 500 }, plan: { key: 'header:x-customer', table: 'customers' }, window: '1m' },
        { name: 'app', limit: 10, limits: { pro: 500 }, plan: (c) => c.get('plan'), window: '1m' },
        { name: 'month', algorithm: 'fixed-window', limit: 9, window: 'month', timeZone: 'Europe/Berlin' },
        { name: 'at-once', algorithm: 'concurrency', limit: 3, window: '1h' },
      ],
    }`,
    )
    const args = ['--config', file, '--path', '/', '--ip', '203.0.113.7']
    const first = (text: string) => text.split('\n').filter((line) => line.startsWith('met'))
    const acme = await explain([...args, '--header', 'x-customer: acme'])
    expect(first(acme.stdout)).toEqual([
      'met      plan     500 (its plan) in 1m, sliding-window',
      'met      app      10 (no plan) in 1m, sliding-window',
      'met      month    9 in a month (Europe/Berlin), fixed-window',
      'met      at-once  3 at once, each for 1h at most, concurrency',
    ])
    const { stdout } = await explain([...args, '--header', 'x-customer: globex'])
    expect(first(stdout)[0]).toBe('met      plan     10 (no plan) in 1m, sliding-window')
  })

  test('A note says which keys in Redis a namespace makes, if a policy applies to the request.', async () => {
    const file = await write(
      'namespace',
      `export default {
      namespace: 'shop',
      allow: { path: '/health' },
      policies: [{ name: 'per-ip', limit: 5, window: '1m' }],
    }`,
    )
    const notes = async (path: string) => {
      const { stdout } = await explain(['--config', file, '--path', path, '--json'])
      return JSON.parse(stdout).notes
    }
    expect(await notes('/')).toEqual([
      'its counters are in the namespace shop: in Redis sluice:1:shop:{…}',
    ])
    expect(await notes('/health')).toEqual([])
  })

  test('A note says how many of several databases a request may ask.', async () => {
    const file = await write(
      'shards',
      `export default {
      shards: ['a', 'b'],
      policies: [
        { name: 'per-ip', limit: 5, window: '1m' },
        { name: 'more', limit: 50, window: '1h' },
        { name: 'tenant', limit: 5, window: '1m', key: 'header:x-a', onMissingKey: 'skip' },
        { name: 'user', limit: 5, window: '1m', key: 'header:x-b', onMissingKey: 'skip' },
      ],
    }`,
    )
    const notes = async (...headers: string[]) => {
      const sent = headers.flatMap((name) => ['--header', `${name}: 1`])
      const { stdout } = await explain(['--config', file, '--path', '/', '--json', ...sent])
      return JSON.parse(stdout).notes
    }
    expect(await notes()).toEqual([])
    const note = (keys: number) => `its ${keys} keys may be in 2 of the 2 databases: a call to each`
    expect(await notes('x-a')).toEqual([note(2)])
    expect(await notes('x-a', 'x-b')).toEqual([note(3)])
  })
})
