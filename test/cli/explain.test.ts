import { createHmac } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type ConfigFolder, configFolder, explain, root, run } from '../support/dev-command.ts'
import { importsFor } from '../support/entries.ts'
import { exporting, isConfig } from '../support/examples.ts'
import { type Block, blocksOf, pages } from '../support/pages.ts'

const CONFIG = `import { jwt } from ${JSON.stringify(`${root}src/features/jwt/index.ts`)}
export default {
  use: [jwt({ secret: 'EXPLAIN_SECRET' })],
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
    { name: 'keyed', limit: 5, window: 1500, key: 'api-key', onMissingKey: 'skip' },
    { name: 'posts', limit: 5, window: '1h', match: { method: ['POST', 'PUT'] } },
    { name: 'shop', limit: 5, window: '1h', match: { host: ['shop.example.com', '*.shop.example.com'] } },
    { name: 'abroad', limit: 5, window: '1h', match: { country: ['FR', 'AT'], ip: ['10.0.0.0/8', '10.0.0.1', '10.0.0.2', '10.0.0.3', '10.0.0.4', '10.0.0.5', '10.0.0.6'] } },
    { name: 'bots', limit: 5, window: '1h', match: { header: { 'x-a': true, 'user-agent': ['*bot*', 'curl/*'] } } },
    { name: 'app', limit: 5, window: '1h', key: [(c) => c.get('user'), 'method'] },
  ],
}`

/** The commands of the documentation, each with its page, the configuration above it on the page, and the output that the page shows. */
const documented = pages.flatMap((page) => {
  let example: Block | undefined
  return blocksOf(page).flatMap((block) => {
    if (isConfig(block)) example = block
    const [, command, output] =
      /^\$ ((?:npm run|npx sluice) explain (?:-- )?.*)\n(.*)$/s.exec(block.code) ?? []
    return command && output ? [[command, page.path, example, output] as const] : []
  })
})

let config = ''
let configs: ConfigFolder
beforeAll(async () => {
  configs = await configFolder()
  config = await configs.write('config', CONFIG)
})
afterAll(() => configs.remove())

describe('sluice explain', () => {
  test('sluice explain shows the policies of the shipped configuration that apply to a login.', async () => {
    const args = 'cli/main.ts explain --method POST --path /login --ip 203.0.113.7'
    expect(await run(process.execPath, args.split(' '))).toEqual({
      code: 0,
      stderr: '',
      stdout: `POST https://www.example.com/login from 203.0.113.7

No entry of allow or deny matches the request.

applies  policy        limit, key and cost, or why the policy does not apply
yes      per-ip        limit  10 per 10s, sliding-window
                       key    ip = 203.0.113.7
                       cost   1
yes      per-ip-daily  limit  1000 per 1d, fixed-window
                       key    ip = 203.0.113.7
                       cost   1
yes      login         limit  5 per 1m, fixed-window
                       key    ip = 203.0.113.7
                       cost   1

In Redis, a compiled script decides.
`,
    })
  })

  test('sluice explain shows why a policy does not apply: the value of the request and the values of the policy.', async () => {
    const { stdout, stderr, code } = await explain(
      `--config ${config} --path //API/./Export/a%20b?x=1 --ip 2001:db8:1:2:3::4 --country de
        --asn 64500 --colo fra --header 'X-A: ' --header 'User-Agent: Mozilla/5.0 (X11)'`,
    )
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(
      stdout,
    ).toBe(`GET https://www.example.com//API/Export/a%20b?x=1 from 2001:db8:1:2:3::4, DE, AS64500, FRA
Policies see the path //API/./Export/a%20b as "/api/export/a b". Some origins may read it as "/export/a b"; the strictest reading counts.

No entry of allow or deny matches the request.

applies  policy   limit, key and cost, or why the policy does not apply
yes      per-ip   limit  100 per 1m, sliding-window
                  key    ip = 2001:db8:1:2::/64
                  cost   1
yes      exports  limit  10 per 90s, token-bucket, burst 30, in shadow
                  key    path:id is missing (onMissingKey: share), header:x-tenant is missing (onMissingKey: share)
                  cost   1
yes      user     limit  1000 per 1d, fixed-window, aligned to the clock
                  key    ip = 2001:db8:1:2::/64 (instead of jwt:sub, which has no value)
                  cost   1
no       keyed    the key part api-key is missing (onMissingKey: skip)
no       posts    the method is GET, the policy matches POST, PUT
no       shop     the host is www.example.com, the policy matches shop.example.com, *.shop.example.com
no       abroad   the country is DE, the policy matches FR, AT
no       bots     the header user-agent is "Mozilla/5.0 (X11)", the policy matches *bot*, curl/*
yes      app      limit  5 per 1h, sliding-window
                  key    result of a function, method = GET
                  cost   1

In Redis, the general script decides.
`)
  })

  test('sluice explain verifies credentials with the variables of the environment, and names the entry that exempts a request.', async () => {
    const secret = 'a secret of at least thirty-two bytes'
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const signed = `${part({ alg: 'HS256' })}.${part({ sub: 'ann\u0007' })}`
    const token = `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`
    const digest = '2c70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b683' // of "key"
    const { stdout } = await explain(
      `--config ${config} --method HEAD --path /v1/7 --ip 198.51.100.9 --country AT
        --header 'Authorization: Bearer ${token}' --header 'x-api-key: key' --header 'x-plan: Pro 2'`,
      { EXPLAIN_SECRET: secret, EXPLAIN_KEYS: digest },
    )
    expect(stdout).toBe(`HEAD https://www.example.com/v1/7 from 198.51.100.9, AT

2 of 9 policies do not apply because of allow "office".

applies  policy   limit, key and cost, or why the policy does not apply
no       per-ip   allow "office" exempts the request
no       exports  allow "office" exempts the request
yes      user     limit  1000 per 1d, fixed-window, aligned to the clock
                  key    jwt:sub = "ann\\u0007"
                  cost   1
yes      keyed    limit  5 per 1500ms, sliding-window
                  key    api-key = ${digest}
                  cost   1
no       posts    the method is HEAD, the policy matches POST, PUT
no       shop     the host is www.example.com, the policy matches shop.example.com, *.shop.example.com
no       abroad   the address is 198.51.100.9, the policy matches 10.0.0.0/8, 10.0.0.1, 10.0.0.2, 10.0.0.3, 10.0.0.4 … and 2 more
no       bots     the header x-a is missing
yes      app      limit  5 per 1h, sliding-window
                  key    result of a function, method = HEAD
                  cost   1

In Redis, the general script decides.
`)
  })

  test('sluice explain names the entry of `not` that excludes a request.', async () => {
    const { stdout } = await explain(
      `--config ${config} --method HEAD --path /v1/7 --header 'x-plan: professional'
        --header 'authorization: Bearer a.b.c' --host EU.shop.example.com.:8443`,
    )
    expect(stdout).toContain(
      'no       exports  match.not[1] excludes the request (method HEAD, x-plan pro* or "a b")\n',
    )
    expect(stdout).toContain(
      'HEAD https://eu.shop.example.com.:8443/v1/7 from an unknown address\n',
    )
    expect(stdout).toContain(`yes      shop     limit  5 per 1h, sliding-window
                  key    ip is missing (onMissingKey: share)
`)
  })

  test.each([
    ['--ip 192.0.2.7', 'deny[0]'],
    ['--country t1', 'deny "tor"'],
  ])(
    'For a request with %s, which an entry of deny refuses, sluice explain shows no policy.',
    async (args, entry) => {
      const { stdout } = await explain(`--config ${config} --path / ${args}`)
      const line = `The entry ${entry} refuses the request with 403. Nothing is charged.`
      expect(stdout.split('\n').slice(1)).toEqual(['', line, ''])
    },
  )

  test('The option --json prints the explanation as JSON.', async () => {
    const { stdout } = await explain(
      `--config ${config} --json --method POST --path /V1/%C2%9b7 --header 'x-tenant: t1'`,
    )
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
        ja4: null,
        botScore: null,
        verifiedBot: null,
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
        key: [
          { part: 'path:id', value: '7' },
          { part: 'header:x-tenant', value: 't1' },
        ],
        insteadOf: null,
        onMissingKey: 'share',
        cost: 5,
        refusal: null,
      },
      expect.objectContaining({
        policy: 'user',
        insteadOf: ['jwt:sub'],
        key: [{ part: 'ip', value: null }],
      }),
      {
        policy: 'keyed',
        met: false,
        unmet: 'key',
        why: 'the key part api-key is missing (onMissingKey: skip)',
      },
    ])
  })

  test('Conditions on bots and the query are explained with the values of both sides, and a refusal with its parts.', async () => {
    const policy = "limit: 1, window: '1s'"
    const file = await configs.write(
      'bots',
      `export default {
      refusal: { headers: { 'x-docs': 'yes' } },
      policies: [
        { name: 'own', ${policy}, refusal: { status: 420, body: { json: 1, html: 'x' } } },
        { name: 'function', ${policy}, refusal: () => new Response() },
        { name: 'all', ${policy} },
        { name: 'network', ${policy}, match: { asn: [1, 2] } },
        { name: 'verified', ${policy}, match: { verifiedBot: true } },
        { name: 'category', ${policy}, match: { verifiedBot: ['AI Search'] } },
        { name: 'score', ${policy}, match: { botScore: { atLeast: 30, below: 90 } } },
        { name: 'ja4', ${policy}, match: { ja4: 'q13d*' } },
        { name: 'query', ${policy}, match: { query: { a: 'x', b: ['y', 'z'] } } },
        { name: 'not', ${policy}, match: { not: { verifiedBot: 'AI Crawler', botScore: { below: 5 }, query: { a: true } } } },
      ],
    }`,
    )
    const ja4 = 't13d1516h2_8daaf6152771_02713d6af862'
    const args = `--config ${file} --path '/?a=x&b=1&b=2' --asn 7 --bot-score 3 --ja4 ${ja4}`
    const { stdout } = await explain(`${args} --verified-bot 'AI Crawler'`)
    expect(stdout).toContain(
      'from an unknown address, AS7, JA4 t13d1516h2_8daaf6152771_02713d6af862, bot score 3, verified bot (AI Crawler)',
    )
    for (const line of [
      'refused  status 420, json, html',
      'refused  by a function',
      'refused  x-docs',
      'the network is AS7, the policy matches 1, 2',
      'the client is a verified bot of the category "AI Crawler", the policy matches "ai search"',
      'the bot score is 3, the policy matches at least 30 and below 90',
      'the JA4 fingerprint is t13d1516h2_8daaf6152771_02713d6af862, the policy matches q13d*',
      'the parameter b is 1, 2, the policy matches y, z',
      'match.not[0] excludes the request ("ai crawler", bot score below 5, any a)',
    ]) {
      expect(stdout).toContain(line)
    }
    const other = await explain(`${args} --verified-bot no`)
    expect(other.stdout).toContain(
      'the client is not a verified bot, the policy matches verified bots',
    )
    const unknown = await explain(args)
    expect(unknown.stdout).toContain('it is unknown if the client is a verified bot')
  })

  test.each(documented)('%s prints what %s shows.', async (command, _, example, output) => {
    let args = command.replace(/^(npm run|npx sluice) explain (-- )?/, '')
    if (example) {
      await mkdir(join(root, '.cache/explain'), { recursive: true })
      const file = join(root, '.cache/explain/sluice.config.ts')
      await writeFile(file, importsFor(example.code) + exporting(example.code))
      args += ` --config ${file}`
    }
    expect((await explain(args)).stdout).toBe(output)
  })

  test('The option --help lists every option.', async () => {
    const { code, stdout } = await explain('--help')
    expect(code).toBe(0)
    const flags =
      'path method host ip header cookie country asn colo ja4 bot-score verified-bot config json'
    for (const flag of flags.split(' ')) expect(stdout).toContain(`  --${flag} `)
  })
})
