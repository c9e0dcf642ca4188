import { createHmac } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type ConfigFolder, configFolder, explain, root, run } from '../support/dev-command.ts'

const CONFIG = `export default {
  jwt: { secret: 'EXPLAIN_SECRET' },
  apiKeys: { known: 'EXPLAIN_KEYS' },
  deny: [{ ip: '192.0.2.0/24' }, { name: 'tor', country: 'T1' }],
  allow: [
    { path: '/health' },
    { name: 'office', ip: '198.51.100.0/24', policies: ['per-ip', 'exports'] },
  ],
  policies: [
    { name: 'per-ip', limit: 100, window: '1m' },
    {
      name: 'exports', algorithm: 'token-bucket', limit: 10, burst: 30, window: '90s', mode: 'shadow',
      match: { path: ['/api/export/*', '/v1/:id'], not: [{ path: '/x' }, { method: 'HEAD', header: { 'x-plan': ['pro*', 'a b'] } }] },
      key: ['path:id', 'header:x-tenant'],
      cost: [{ method: 'POST', cost: 5 }],
    },
    { name: 'user', limit: 1000, window: '1d', algorithm: 'fixed-window', align: 'clock', key: 'jwt:sub', onMissingKey: { key: 'ip' } },
    { name: 'keyed', limit: 5, window: 1500, key: 'api-key', onMissingKey: 'skip', check: 'parallel' },
    { name: 'posts', limit: 5, window: '1h', match: { method: ['POST', 'PUT'] } },
    { name: 'shop', limit: 5, window: '1h', match: { host: ['shop.example.com', '*.shop.example.com'] } },
    { name: 'abroad', limit: 5, window: '1h', match: { country: ['FR', 'AT'], ip: ['10.0.0.0/8', '10.0.0.1', '10.0.0.2', '10.0.0.3', '10.0.0.4', '10.0.0.5', '10.0.0.6'] } },
    { name: 'bots', limit: 5, window: '1h', match: { header: { 'x-a': true, 'user-agent': ['*bot*', 'curl/*'] } } },
    { name: 'app', limit: 5, window: '1h', key: [(c) => c.get('user'), 'method'] },
  ],
}`

let config = ''
let configs: ConfigFolder
let write: ConfigFolder['write']
beforeAll(async () => {
  configs = await configFolder()
  write = configs.write
  config = await write('config', CONFIG)
})
afterAll(() => configs.remove())

describe('npm run explain', () => {
  test('npm run explain shows how a login meets the policies of the shipped configuration.', async () => {
    const args = ['--method', 'POST', '--path', '/login', '--ip', '203.0.113.7']
    expect(await run('npm', ['run', '--silent', 'explain', '--', ...args])).toEqual({
      code: 0,
      stderr: '',
      stdout: `POST https://www.example.com/login from 203.0.113.7

No list names it.

met      per-ip        10 in 10s, sliding-window
                       key   ip = 203.0.113.7
                       cost  1
met      per-ip-daily  1000 in 1d, fixed-window
                       key   ip = 203.0.113.7
                       cost  1
met      login         5 in 1m, fixed-window
                       key   ip = 203.0.113.7
                       cost  1
`,
    })
  })

  test('npm run explain says why a policy does not apply: the value of the request and those of the policy.', async () => {
    const args = [
      '--path',
      '//API/./Export/a%20b?x=1',
      '--ip',
      '2001:db8:1:2:3::4',
      '--country',
      'de',
      '--asn',
      '64500',
      '--colo',
      'fra',
    ]
    const headers = ['--header', 'X-A: ', '--header', 'User-Agent: Mozilla/5.0 (X11)']
    const { stdout, stderr, code } = await explain(['--config', config, ...args, ...headers])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(
      stdout,
    ).toBe(`GET https://www.example.com//API/Export/a%20b?x=1 from 2001:db8:1:2:3::4, DE, AS64500, FRA
The path //API/./Export/a%20b is seen as "/api/export/a b".

No list names it.

met      per-ip   100 in 1m, sliding-window
                  key   ip = 2001:db8:1:2::/64
                  cost  1
met      exports  10 in 90s, token-bucket, burst 30, in shadow
                  key   path:id is missing → share, header:x-tenant is missing → share
                  cost  1
met      user     1000 in 1d, fixed-window, by the clock
                  key   ip = 2001:db8:1:2::/64 (instead of jwt:sub, which has no value)
                  cost  1
not met  keyed    key: api-key is missing → skip
not met  posts    method: is GET, the policy has POST, PUT
not met  shop     host: is www.example.com, the policy has shop.example.com, *.shop.example.com
not met  abroad   country: is DE, the policy has FR, AT
not met  bots     header: user-agent is "Mozilla/5.0 (X11)", the policy has *bot*, curl/*
met      app      5 in 1h, sliding-window
                  key   by a function, method = GET
                  cost  1
`)
  })

  test('npm run explain verifies credentials by the variables of the environment, and names the list entry that skips a policy.', async () => {
    const secret = 'a secret of at least thirty-two bytes'
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const signed = `${part({ alg: 'HS256' })}.${part({ sub: 'ann\u0007' })}`
    const token = `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`
    const digest = '2c70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b683' // of "key"
    const args = ['--method', 'HEAD', '--path', '/v1/7', '--ip', '198.51.100.9', '--country', 'AT']
    const sent = [
      '--header',
      `Authorization: Bearer ${token}`,
      '--header',
      'x-api-key: key',
      '--header',
      'x-plan: Pro 2',
    ]
    const { stdout } = await explain(['--config', config, ...args, ...sent], {
      EXPLAIN_SECRET: secret,
      EXPLAIN_KEYS: digest,
    })
    expect(stdout).toBe(`HEAD https://www.example.com/v1/7 from 198.51.100.9, AT

allow "office" lets it skip 2 of 9 policies.

not met  per-ip   allow "office" skips it
not met  exports  allow "office" skips it
met      user     1000 in 1d, fixed-window, by the clock
                  key   jwt:sub = "ann\\u0007"
                  cost  1
met      keyed    5 in 1500ms, sliding-window, checked in parallel
                  key   api-key = ${digest}
                  cost  1
not met  posts    method: is HEAD, the policy has POST, PUT
not met  shop     host: is www.example.com, the policy has shop.example.com, *.shop.example.com
not met  abroad   ip: 198.51.100.9 is not in 10.0.0.0/8 or 10.0.0.1 or 10.0.0.2 or 10.0.0.3 or 10.0.0.4 … and 2 more
not met  bots     header: x-a is missing
met      app      5 in 1h, sliding-window
                  key   by a function, method = HEAD
                  cost  1
`)
  })

  test('npm run explain names the entry of not that excludes a request.', async () => {
    const args = [
      '--method',
      'HEAD',
      '--path',
      '/v1/7',
      '--header',
      'x-plan: professional',
      '--header',
      'authorization: Bearer a.b.c',
    ]
    const { stdout } = await explain([
      '--config',
      config,
      ...args,
      '--host',
      'EU.shop.example.com.:8443',
    ])
    expect(stdout).toContain(
      'not met  exports  not: not[1] takes it away (method HEAD, x-plan pro* or "a b")\n',
    )
    expect(stdout).toContain(
      'HEAD https://eu.shop.example.com.:8443/v1/7 from an unknown address\n',
    )
    expect(stdout).toContain(`met      shop     5 in 1h, sliding-window
                  key   ip is missing → share
`)
  })

  test.each([
    [['--path', '/', '--ip', '192.0.2.7'], '403: deny[0] refuses it. Nothing is counted.'],
    [['--path', '/', '--country', 't1'], '403: deny "tor" refuses it. Nothing is counted.'],
  ])(
    'A request with %j is refused by a list, and npm run explain shows no policy.',
    async (args, line) => {
      const { stdout } = await explain(['--config', config, ...args])
      expect(stdout.split('\n').slice(1)).toEqual(['', line, ''])
    },
  )

  test('The option --json prints the same for programs.', async () => {
    const args = ['--config', config, '--json', '--method', 'POST', '--path', '/V1/%C2%9b7']
    const { stdout } = await explain([...args, '--header', 'x-tenant: t1'])
    expect(stdout).not.toMatch(/(?!\n)\p{C}/u)
    const { request, denied, policies, notes } = JSON.parse(stdout)
    expect({ request, denied, notes }).toEqual({
      request: {
        method: 'POST',
        url: 'https://www.example.com/V1/%C2%9b7',
        path: '/V1/%C2%9b7',
        seenAs: ['/v1/\u009b7'],
        ip: null,
        country: null,
        asn: null,
        colo: null,
      },
      denied: null,
      notes: [],
    })
    expect(policies.slice(1, 4)).toEqual([
      {
        policy: 'exports',
        met: true,
        mode: 'shadow',
        algorithm: 'token-bucket',
        limit: 10,
        ofPlan: null,
        windowMs: 90_000,
        calendar: null,
        burst: 30,
        align: 'first-request',
        check: 'before',
        key: [
          { part: 'path:id', value: '\u009b7' },
          { part: 'header:x-tenant', value: 't1' },
        ],
        insteadOf: null,
        onMissingKey: 'share',
        cost: 5,
      },
      expect.objectContaining({
        policy: 'user',
        insteadOf: ['jwt:sub'],
        key: [{ part: 'ip', value: null }],
      }),
      { policy: 'keyed', met: false, unmet: 'key', why: 'key: api-key is missing → skip' },
    ])
  })

  test('The examples in docs/reference/cli.md are what npm run explain prints.', async () => {
    const docs = await readFile(join(root, 'docs/reference/cli.md'), 'utf8')
    const shown = [...docs.matchAll(/^\$ npm run explain -- (.*)\n([^`]*)```/gm)]
    expect(shown).toHaveLength(2)
    for (const [, args, output] of shown) {
      expect((await explain(args!.split(' '))).stdout).toBe(output)
    }
  })

  test('The option --help lists every option.', async () => {
    const { code, stdout } = await explain(['--help'])
    expect(code).toBe(0)
    for (const flag of [
      'path',
      'method',
      'host',
      'ip',
      'header',
      'cookie',
      'country',
      'asn',
      'colo',
      'config',
      'json',
    ]) {
      expect(stdout).toContain(`  --${flag} `)
    }
  })
})
