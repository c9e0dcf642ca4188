import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openPrivateRedis, type PrivateRedis } from '../../../cli/replay/decide/private-redis.ts'
import { createReplayer } from '../../../cli/replay/decide/replayer.ts'
import type { LogLine } from '../../../cli/replay/line.ts'
import type { ConfigOptions, PolicyOptions } from '../../../src/core/config/options.ts'
import { parseConfig } from '../../../src/core/config/parse.ts'
import { defaultFields } from '../../../src/features/defaults.ts'
import { openConnection } from '../../support/redis-connection.ts'
import { lineAt, NOON, replay, someFacts } from '../../support/replay.ts'

let redis: PrivateRedis
beforeAll(async () => {
  redis = await openPrivateRedis()
})
afterAll(() => redis.stop())

const perIp: PolicyOptions = { name: 'per-ip', algorithm: 'fixed-window', limit: 2, window: '10s' }

/** 23:00 UTC, which is midnight in Berlin. */
const MIDNIGHT = 11 * 3_600_000
const STATUSES = [200, 401, 200, 200, 401, 200, 401].map((status) => ({ status }))
const PRO = { headers: { 'x-plan': 'pro' } }
const ALLOWED = { ip: '198.51.100.1' }
/** One line in each ms. */
const linesOf = (all: Partial<LogLine>[]) => all.map((more, ms) => lineAt(ms, more))

/** Who refuses each line: the names of the policies, or `by`. */
async function refusals(config: ConfigOptions, lines: LogLine[], engine: string) {
  const decided = await replay(config, lines, engine === 'redis' ? { redis } : {})
  return decided.map(({ spread: { allowed, by, refusedBy, shadowRefusedBy } }) => {
    if (by !== 'policies') return by
    const names = [...refusedBy, ...shadowRefusedBy.map((name) => `(${name})`)].join(' ')
    return allowed && names === '' ? '' : names
  })
}

describe.each(['memory', 'redis'])('A replay in %s', (engine) => {
  test.each<[string, ConfigOptions, LogLine[], string[]]>([
    [
      'A refused request is charged to none of its limits.',
      { policies: [perIp, { ...perIp, name: 'login', match: { path: '/login' }, limit: 1 }] },
      linesOf(['/login', '/login', '/login', '/', '/'].map((target) => ({ target }))),
      ['', 'login', 'login', '', 'per-ip'],
    ],
    [
      'A shadow policy counts what the enforced policies admit, and refuses nothing.',
      { policies: [perIp, { ...perIp, name: 'tried', limit: 1, mode: 'shadow' }] },
      linesOf([{}, {}, {}, {}]),
      ['', '(tried)', 'per-ip (tried)', 'per-ip (tried)'],
    ],
    [
      'Only logged statuses of countOnly are charged.',
      { policies: [{ ...perIp, countOnly: 401 }] },
      linesOf(STATUSES),
      ['', '', '', '', '', 'per-ip', 'per-ip'],
    ],
    [
      'The memory decides a sliding window with room by itself, and charges the same statuses.',
      { policies: [{ ...perIp, algorithm: 'sliding-window', countOnly: 401 }] },
      linesOf(STATUSES),
      ['', '', '', '', '', 'per-ip', 'per-ip'],
    ],
    [
      'A line without a status is charged, as a response that counts.',
      { policies: [{ ...perIp, countOnly: 401 }] },
      [lineAt(0), lineAt(0), lineAt(0)],
      ['', '', 'per-ip'],
    ],
    [
      'A calendar window ends with the day of its time zone.',
      { policies: [{ ...perIp, limit: 1, window: 'day', timeZone: 'Europe/Berlin' }] },
      [0, 1, MIDNIGHT - 1, MIDNIGHT, MIDNIGHT + 1].map((ms) => lineAt(ms)),
      ['', 'per-ip', 'per-ip', '', 'per-ip'],
    ],
    [
      'The plan of a request sets the size of the limit.',
      { policies: [{ ...perIp, plan: 'header:x-plan', limits: { pro: 3 } }] },
      linesOf([{}, {}, {}, PRO, PRO]),
      ['', '', 'per-ip', '', 'per-ip'],
    ],
    [
      'Each quota that the readings of a path select is charged.',
      { policies: [{ ...perIp, limit: 1, match: { path: '/u/:id' }, key: 'path:id' }] },
      linesOf(['/u/a%2F..%2Fb', '/u/b', '/u/c', '/u/b/../c'].map((target) => ({ target }))),
      ['', 'per-ip', '', 'per-ip'],
    ],
    [
      'Entries of deny refuse, and entries of allow skip policies.',
      {
        policies: [{ ...perIp, limit: 1 }],
        deny: { path: '/wp-admin/*' },
        allow: { ip: '198.51.100.0/24' },
      },
      linesOf([{ target: '/wp-admin/' }, {}, {}, ALLOWED, ALLOWED]),
      ['deny', '', 'per-ip', '', ''],
    ],
    [
      'A condition by query looks at each request of an address.',
      { policies: [{ ...perIp, limit: 1, match: { query: { action: 'export' } } }] },
      linesOf(['/', '/?action=export', '/', '/?action=export'].map((target) => ({ target }))),
      ['', '', '', 'per-ip'],
    ],
    [
      'A cost by query looks at each request of an address.',
      { policies: [{ ...perIp, cost: [{ query: { all: true }, cost: 2 }] }] },
      linesOf(['/', '/?all', '/'].map((target) => ({ target }))),
      ['', 'per-ip', ''],
    ],
    [
      'Entries of lists by query and by network look at each request of an address.',
      {
        policies: [{ ...perIp, limit: 1 }],
        deny: { query: { debug: true } },
        allow: { asn: 64500 },
      },
      linesOf([{}, { target: '/?debug' }, { asn: '64500' }, {}, { asn: '64501' }]),
      ['', 'deny', '', 'per-ip', 'per-ip'],
    ],
    [
      'Requests that reserve names leave a part of the quota to the others.',
      { policies: [{ ...perIp, reserve: [{ match: { path: '/batch' }, share: 0.5 }] }] },
      linesOf(['/batch', '/batch', '/', '/'].map((target) => ({ target }))),
      ['', 'per-ip', '', 'per-ip'],
    ],
    [
      'Addresses of one IPv6 /64 are one client, and ports do not matter.',
      { policies: [perIp] },
      linesOf(
        ['2001:db8::1', '[2001:db8::2]:443', '2001:db8::3', '203.0.113.7:80', '203.0.113.7'].map(
          (ip) => ({ ip }),
        ),
      ),
      ['', '', 'per-ip', '', ''],
    ],
  ])('%s', async (_, config, lines, expected) => {
    expect(await refusals(config, lines, engine)).toEqual(expected)
  })

  test('A request without a part of the key is shared, skipped, refused or counted by another key.', async () => {
    const by = (onMissingKey: PolicyOptions['onMissingKey']) =>
      refusals(
        { policies: [{ ...perIp, limit: 1, key: 'header:x-user', onMissingKey }] },
        [lineAt(0), lineAt(1, { ip: '203.0.113.8' }), lineAt(2)],
        engine,
      )
    expect(await by('share')).toEqual(['', 'per-ip', 'per-ip'])
    expect(await by('skip')).toEqual(['', '', ''])
    expect(await by('refuse')).toEqual(['missing-key', 'missing-key', 'missing-key'])
    expect(await by({ key: 'ip' })).toEqual(['', '', 'per-ip'])
  })

  test('Hostile lines are decided like others.', async () => {
    const config: ConfigOptions = {
      policies: [
        { ...perIp, limit: 100, match: { path: '/*', host: '*.example.com' } },
        { ...perIp, name: 'by-query', limit: 100, key: ['query:q', 'path', 'header:user-agent'] },
      ],
    }
    const targets = [
      `/${'a'.repeat(70_000)}?q=${'b'.repeat(70_000)}`,
      '/%',
      '/%zz%c3%28?q=%',
      '*',
      'example.com:443',
      '',
      '//[::1',
      '/\u0000\ud800?\udfff',
      '/?q=\'"><script>}{\r\n',
      '/..;/..%5c..%2f',
      'http://[/x',
    ]
    const lines = targets.flatMap((target) =>
      ['a.example.com', 'a b', '[', '', 'evil/path', 'a.example.com:99999', '__proto__'].map(
        (host) => lineAt(0, { target, host, ip: host, method: target, userAgent: `${target}}` }),
      ),
    )
    expect(await refusals(config, lines, engine)).toEqual(lines.map(() => ''))
  })

  test('A log of whole seconds is decided spread out and all at once.', async () => {
    const config: ConfigOptions = {
      policies: [{ ...perIp, algorithm: 'gcra', limit: 4, window: '1s' }],
    }
    const lines = [0, 0, 0, 0, 1000].map((ms) => lineAt(ms))
    const options = { wholeSeconds: true, ...(engine === 'redis' && { redis }) }
    const decided = await replay(config, lines, options)
    expect(decided.map(({ spread }) => spread.allowed)).toEqual([true, true, true, true, true])
    expect(decided.map(({ burst }) => burst.allowed)).toEqual([true, false, false, false, true])
  })
})

test('A penalty bans a client, and its verdicts name the policy.', async () => {
  const penalty: PolicyOptions['penalty'] = { after: 2, within: '10s', ban: '60s' }
  const config: ConfigOptions = { policies: [{ ...perIp, limit: 1, window: '1s', penalty }] }
  const lines = [0, 1, 2, 1500, 30_000, 60_001, 60_003].map((ms) => lineAt(ms))
  expect(await refusals(config, lines, 'redis')).toEqual([
    '',
    'per-ip',
    'per-ip',
    'per-ip',
    'per-ip',
    'per-ip',
    '',
  ])
})

test('A refund by countOnly comes before the next line of the same client in the same millisecond.', async () => {
  const penalty: PolicyOptions['penalty'] = { after: 100, within: '10s', ban: '60s' }
  const config = { policies: [{ ...perIp, limit: 1, countOnly: 401, penalty }] }
  const statuses = [200, 200, 401, 200, 401]
  const lines = statuses.map((status) => lineAt(0, { status }))
  expect(await refusals(config, lines, 'redis')).toEqual(['', '', '', 'per-ip', 'per-ip'])
})

test('A state lives by the times of the lines, however long the replay takes.', async () => {
  const config = parseConfig({ policies: [{ ...perIp, limit: 1, window: '1s' }] }, defaultFields)
  const replayer = await createReplayer(
    config,
    { facts: someFacts, wholeSeconds: false },
    { exact: true },
  )
  try {
    expect(replayer.engine).toBe('redis')
    await replayer.decide([lineAt(0)])
    await new Promise((resolve) => setTimeout(resolve, 1100))
    const [later] = await replayer.decide([lineAt(999)])
    expect(later!.spread.refusedBy).toEqual(['per-ip'])
  } finally {
    await replayer.close()
  }
})

test.each([
  [1999, 4],
  [2000, 3],
  [3000, 2],
  [8000, 0],
])(
  'A sweep after %i ms leaves the %i records and logs that have not run out.',
  async (ms, left) => {
    const own = await openPrivateRedis({ few: 0 })
    try {
      const policies: PolicyOptions[] = [
        { name: 'short', limit: 9, window: '1s' },
        { name: 'log', limit: 9, window: '3s', algorithm: 'sliding-log' },
      ]
      await replay({ policies }, [lineAt(0), lineAt(5000, { ip: '203.0.113.8' })], { redis: own })
      expect(await own.sweep(NOON + ms, 3000)).toBe(left)
    } finally {
      await own.stop()
    }
  },
)

test('The error after a crash of Redis says that it ended.', async () => {
  const own = await openPrivateRedis()
  const other = await openConnection(own.url)
  try {
    const lines = Array.from({ length: 100_000 }, (_, ms) => lineAt(ms, { status: 404 }))
    const config: ConfigOptions = { policies: [{ ...perIp, countOnly: '4xx' }] }
    const replaying = replay(config, lines, { redis: own })
    const failed = expect(replaying).rejects.toThrow(
      'Redis ended during the replay. Run the command again.',
    )
    while (!(await other.sendCommand(['DBSIZE']))) await new Promise(setImmediate)
    await other.sendCommand(['SHUTDOWN', 'NOSAVE']).catch(() => {})
    await failed
    await expect(replay(config, lines, { redis: own })).rejects.toThrow('Redis ended')
  } finally {
    other.destroy()
    await own.stop()
  }
})
