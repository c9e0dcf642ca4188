import { spawn } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parseCli } from '../../dev/explain/cli.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

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

let folder = ''
let config = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-explain-'))
  config = await write('config', CONFIG)
})
afterAll(() => rm(folder, { recursive: true }))

async function write(name: string, text: string): Promise<string> {
  const file = join(folder, `${name}.mts`)
  await writeFile(file, text)
  return file
}

async function run(command: string, args: string[], env: Record<string, string> = {}) {
  const child = spawn(command, args, { cwd: root, env: { ...process.env, ...env } })
  let [stdout, stderr] = ['', '']
  child.stdout.on('data', (chunk) => (stdout += chunk))
  child.stderr.on('data', (chunk) => (stderr += chunk))
  const code = await new Promise((resolve) => child.once('close', resolve))
  return { code, stdout, stderr }
}
const explain = (args: string[], env?: Record<string, string>) =>
  run(process.execPath, ['dev/explain.ts', ...args], env)

describe('npm run explain', () => {
  test('the shipped configuration, a login', async () => {
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

  test('why policies do not meet: what the request is, and what they have', async () => {
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

  test('credentials by the variables of the environment, and lists that skip some', async () => {
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

  test('what a not takes away, and what the log would say', async () => {
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
  ])('%j is refused by a list: no policy is asked', async (args, line) => {
    const { stdout } = await explain(['--config', config, ...args])
    expect(stdout.split('\n').slice(1)).toEqual(['', line, ''])
  })

  test('a request that meets none, one that is refused for its key, and a path of the Worker', async () => {
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

  test('a path that origins read in several ways', async () => {
    const { stdout } = await explain(['--path', '/Login/x%2F..', '--method', 'POST'])
    expect(stdout).toContain(
      'The path /Login/x%2F.. is seen as /login, and by some origins as /login/x%2f..: the strictest counts.\n',
    )
    expect(stdout).toMatch(/^met {6}login /m)
  })

  test('a path that names several quotas, and credentials that name none', async () => {
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

  test('--json is the same for programs', async () => {
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

  test('a shield that counts it first', async () => {
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

  test('docs/linter.md shows what it prints', async () => {
    const docs = await readFile(join(root, 'docs/linter.md'), 'utf8')
    const shown = [...docs.matchAll(/^\$ npm run explain -- (.*)\n([^`]*)```/gm)]
    expect(shown).toHaveLength(2)
    for (const [, args, output] of shown) {
      expect((await explain(args!.split(' '))).stdout).toBe(output)
    }
  })

  test('--help', async () => {
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

test('plans, calendars and concurrency: what the limit is', async () => {
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

describe('a mistake is told in a line', () => {
  const path = ['--path', '/']
  test.each<[string[], string]>([
    [[], '--path: expected a path like "/login"'],
    [
      ['--path', 'login'],
      '--path: expected a path like "/login?next=%2F", percent-encoded, got "login"',
    ],
    [
      ['--path', '/a#b'],
      '--path: expected a path like "/login?next=%2F", percent-encoded, got "/a#b"',
    ],
    [
      ['--path', '/lo\ngin'],
      '--path: expected a path like "/login?next=%2F", percent-encoded, got "/lo\\ngin"',
    ],
    [[...path, '--host', 'a/b'], '--host: expected a host like "www.example.com", got "a/b"'],
    [
      [...path, '--host', 'user@evil'],
      '--host: expected a host like "www.example.com", got "user@evil"',
    ],
    [
      [...path, '--host', 'a:99999'],
      '--host: expected a host like "www.example.com", got "a:99999"',
    ],
    [[...path, '--method', 'GET /'], '--method: expected a method like "POST", got "GET /"'],
    [[...path, '--method', 'trace'], '--method: expected a method like "POST", got "trace"'],
    [
      [...path, '--ip', '10.0.0.0/8'],
      '--ip: expected an address like "203.0.113.7" or "2001:db8::7", got "10.0.0.0/8"',
    ],
    [
      [...path, '--ip', '1.2.3'],
      '--ip: expected an address like "203.0.113.7" or "2001:db8::7", got "1.2.3"',
    ],
    [[...path, '--header', 'nothing'], '--header: expected \'name: value\', got "nothing"'],
    [[...path, '--header', 'a b: c'], '--header: expected \'name: value\', got "a b: c"'],
    [
      [...path, '--header', 'a: b\r\nx: y'],
      '--header: expected \'name: value\', got "a: b\\r\\nx: y"',
    ],
    [[...path, '--header', 'a: ☃'], '--header: expected \'name: value\', got "a: ☃"'],
    [[...path, '--header', 'HOST: b'], '--header: host is what --host says'],
    [[...path, '--header', 'CF-Connecting-IP: b'], '--header: cf-connecting-ip is what --ip says'],
    [[...path, '--cookie', 'a'], '--cookie: expected \'name=value\', got "a"'],
    [[...path, '--cookie', 'a=b; c=d'], '--cookie: expected \'name=value\', got "a=b; c=d"'],
    [[...path, '--country', 'DEU'], '--country: expected a country code like "DE", got "DEU"'],
    [[...path, '--asn', 'AS1'], '--asn: expected a number like "64500", got "AS1"'],
    [[...path, '--colo', 'F'], '--colo: expected the code of a data centre like "FRA", got "F"'],
    [[...path, '--pth', '/'], "Unknown option '--pth'"],
    [['/login'], "Unexpected argument '/login'. This command does not take positional arguments"],
    [['--path'], "Option '--path <value>' argument missing"],
  ])('%j', (args, message) => {
    expect(() => parseCli(args)).toThrow(new Error(message))
  })

  test('and ends with 1', async () => {
    expect(await explain(['--path', 'login'])).toEqual({
      code: 1,
      stdout: '',
      stderr:
        '--path: expected a path like "/login?next=%2F", percent-encoded, got "login"\n--help tells more\n',
    })
  })

  test.each([
    ['nowhere', undefined, 'there is no such file'],
    ['empty', 'export const a = 1', 'expected a default export: the configuration'],
    ['throws', "throw new Error('on purpose')", 'on purpose'],
    [
      'wrong',
      'export default { policies: [{ name: "a", limit: 0, window: "1m" }] }',
      'policies[0].limit: expected a whole number of at least 1, got 0',
    ],
    [
      'worse',
      'export default { policy: 7 }',
      '2 problems\n  policies: expected a list of policies, got nothing\n  policy: expected one of the fields',
    ],
  ])('a configuration that is %s', async (name, text, message) => {
    const file = text ? await write(name, text) : join(folder, `${name}.mts`)
    const { code, stdout, stderr } = await explain([...path, '--config', file])
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toContain(`${file}: ${message}`)
  })
})

describe('npm run check -- --policies', () => {
  const check = (...args: string[]) =>
    run(process.execPath, ['dev/check.ts', '--policies', ...args])

  test('is clean as shipped', async () => {
    expect(await run('npm', ['run', '--silent', 'check', '--', '--policies'])).toEqual({
      code: 0,
      stderr: '',
      stdout: '✓ policies\n',
    })
  })

  test('prints each finding, what to do, and where it is explained', async () => {
    const file = await write(
      'findings',
      `export default {
      origin: 'zone',
      policies: [{
        name: 'login',
        limit: 5,
        window: 60,
        match: { path: '/login', method: 'POST' },
        onStoreError: 'allow',
      }],
    }`,
    )
    expect(await check('--config', file)).toEqual({
      code: 1,
      stderr: '',
      stdout: `✗ policies
login-fails-open  policies[0].onStoreError: "login" guards /login, and lets every attempt pass while Redis is away.
  Set onStoreError to 'deny' (503), or to 'local' (each isolate counts by itself). docs/linter.md#login-fails-open
unlikely-duration  policies[0].window: "login" has a window of 60 ms.
  Write the unit, as in '10s': a bare number is milliseconds. docs/linter.md#unlikely-duration
`,
    })
  })

  test('and what defineConfig throws, just so', async () => {
    const file = await write(
      'twice',
      `import { defineConfig } from '${root}src/config/parse.ts'
      const policy = { name: 'a', limit: 1, window: '1m' }
      export default defineConfig({ policies: [policy, policy] })`,
    )
    expect(await check('--config', file)).toEqual({
      code: 1,
      stderr: '',
      stdout: `✗ policies
duplicate-name  policies[1].name: expected a name that no other policy has, got "a"
  Give it a name of its own: it stands in the RateLimit fields, and marks its counters. docs/linter.md#duplicate-name
`,
    })
  })

  test('each problem has a hint of its own where there is one, and the last line says what follows', async () => {
    const file = await write(
      'problems',
      `export default {
      polices: [],
      policies: [{ name: 'a', limit: 0, window: '1m', match: { path: '/api/**' } }],
    }`,
    )
    expect(await check('--config', file)).toEqual({
      code: 1,
      stderr: '',
      stdout: `✗ policies
invalid  policies[0].limit: expected a whole number of at least 1, got 0 (in "a")
invalid  policies[0].match.path: expected a path like "/login", "/users/:id" or "/api/*", got "/api/**" (in "a")
  Write '/api/*': it covers every path below /api.
invalid  polices: unknown field
  Did you mean policies?
The configuration does not load until every invalid setting is fixed. docs/configuration.md describes each field.
`,
    })
  })

  test('a configuration without an origin is found, unless wrangler.toml beside it has the variable ORIGIN', async () => {
    const config = "export default { policies: [{ name: 'a', limit: 5, window: '1m' }] }"
    const file = await write('no-origin', config)
    const { code, stdout } = await check('--config', file)
    expect(code).toBe(1)
    expect(stdout).toMatch(
      /^✗ policies\nno-origin {2}origin: The configuration has no origin: .*\n {2}Write origin: 'zone'/,
    )
    const toml = join(folder, 'wrangler.toml')
    await writeFile(toml, 'name = "a"\n[vars]\nORIGIN = "https://origin.example.com"\n')
    try {
      expect(await check('--config', file)).toMatchObject({ code: 0, stdout: '✓ policies\n' })
    } finally {
      await rm(toml)
    }
  })

  test('a mistake on the command line is told', async () => {
    const { code, stdout, stderr } = await check('--polices')
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(/^Unknown option '--polices'\n\nnpm run check -- /)
  })
})

test('a note says which keys in Redis a namespace makes, if the request meets a policy', async () => {
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

test('of several databases a note says how many a request may ask', async () => {
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
