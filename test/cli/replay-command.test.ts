/** `npx sluice replay`, as a package runs it, with real logs. */
import { once } from 'node:events'
import { mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ReplayReport } from '../../cli/replay/report/types.ts'
import { type CliProject, cliProject } from '../support/cli-project.ts'
import { restoreHeap, root } from '../support/dev-command.ts'
import { countRefusals } from './independent-count.ts'

const compressed = await readFile(`${root}test/cli/replay/logs/apache.log.gz`)
const apache = gunzipSync(compressed).toString()
const configOf = (...policies: string[]) => `export default { policies: [${policies}] }\n`
const PER_IP = "{ name: 'per-ip', limit: 60, window: '1m' }"

let project: CliProject
beforeAll(async () => {
  project = await cliProject()
  await writeFile(join(project.folder, 'access.log.gz'), compressed)
  await project.write('sluice.config.ts', configOf(PER_IP))
  await project.write('strict.config.ts', configOf("{ name: 'per-ip', limit: 20, window: '1m' }"))
})
afterAll(async () => {
  restoreHeap()
  await project.remove()
})

const replay = (args: string[], input?: string | Uint8Array) =>
  project.sluice(['replay', ...args], input === undefined ? {} : { input })
async function reportOf(args: string[], input?: string | Uint8Array): Promise<ReplayReport> {
  const { code, stdout, stderr } = await replay([...args, '--json'], input)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return JSON.parse(stdout)
}
const countOf = (log: string, limit: number) => {
  const [low, high] = [true, false].map((isSpread) =>
    countRefusals(log, { limit, seconds: 60, isSpread }),
  ) as [ReturnType<typeof countRefusals>, ReturnType<typeof countRefusals>]
  return { low: low.refused, high: high.refused, byAddress: high.byAddress }
}

test('The JSON of a hostile log has no characters that command a terminal.', async () => {
  const agent = 'a\u009b2J\u202e\u{e0001}'
  const line = (second: number) =>
    `203.0.113.7 - - [17/May/2015:10:05:0${second % 10} +0000] "GET /${agent} HTTP/1.1" 200 1 "-" "${agent}"\n`
  const log = Array.from({ length: 200 }, (_, n) => line(n)).join('')
  const { stdout } = await replay(['-', '--json'], log)
  expect(JSON.stringify(JSON.parse(stdout))).toContain(agent)
  expect(stdout).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}]/u)
})

describe('A replay of a real log', () => {
  test.each([
    ['apache.log.gz', 60],
    ['nginx-json.log.gz', 20],
  ])(
    'Of %s, a limit of %i refuses as many requests as an independent count, in memory and with Redis.',
    async (log, limit) => {
      const file = `${root}test/cli/replay/logs/${log}`
      const config = limit === 60 ? 'sluice.config.ts' : 'strict.config.ts'
      const { low, high, byAddress } = countOf(gunzipSync(await readFile(file)).toString(), limit)
      const [[address, refused]] = [...byAddress].sort(([, a], [, b]) => b - a) as [
        [string, number],
      ]
      expect(high).toBeGreaterThan(50)
      for (const [options, engine] of [
        [[], 'memory'],
        [['--exact'], 'redis'],
      ] as const) {
        const report = await reportOf([file, '--config', config, ...options])
        expect(report.engine).toBe(engine)
        expect(report.total.refused).toEqual({ low, high })
        expect(report.offenders[0]).toMatchObject({ client: address, refused: { high: refused } })
      }
    },
  )

  test('The text names the format, the bounds and the top offender.', async () => {
    const { code, stdout, stderr } = await replay(['access.log.gz'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toContain('Combined Log Format')
    expect(stdout).toMatch(/\b87\b/)
    expect(stdout).toContain('75.97.9.59')
  })

  test('The standard input may be compressed or not.', async () => {
    const [plain, gzip, none] = await Promise.all([
      reportOf(['-'], apache),
      reportOf(['-'], compressed),
      reportOf([], apache),
    ])
    expect(plain.total).toEqual(gzip.total)
    expect(plain.total).toEqual(none.total)
    expect(plain.total.refused.high).toBe(87)
  })

  test('An output never overwrites an input, also by a pattern or a link.', async () => {
    await project.write('own.log', apache)
    await symlink('own.log', join(project.folder, 'link.log'))
    for (const args of [
      ['own.lo[g]', '--anonymize', 'own.log'],
      ['own.log', '--anonymize', 'link.log'],
      ['own.lo?', '--html', 'own.log'],
      ['own.log', '--html', 'sluice.config.ts'],
      ['own.log', '--html', 'out', '--anonymize', 'out'],
    ]) {
      const { code, stderr } = await replay(args)
      expect([args, code, stderr]).toEqual([args, 2, expect.stringMatching(/^--\w+: \S+ is the /)])
    }
    expect(await readFile(join(project.folder, 'own.log'), 'utf8')).toBe(apache)
  })

  test('Another configuration shows the requests that change.', async () => {
    const { against } = await reportOf(['access.log.gz', '--against', 'strict.config.ts'])
    expect(against).toMatchObject({
      config: 'strict.config.ts',
      both: { high: 87 },
      added: { requests: { low: 0, high: 0 } },
      removed: { requests: { high: countOf(apache, 20).high - 87 } },
    })
  })

  test('The page has no reference to another file.', async () => {
    const { stdout } = await replay(['access.log.gz', '--html', 'out.html'])
    expect(stdout).toMatch(/\nWrote out\.html\n$/)
    const page = await readFile(join(project.folder, 'out.html'), 'utf8')
    expect(page).toContain('75.97.9.59')
    expect(page).not.toMatch(/(src|href)=["']?(https?:)?\/\//)
  })
})

describe('A suggested limit', () => {
  const parts = /\{ name: '([\w-]+)', limit: (\d+), window: '1m', mode: 'shadow' \},/

  test('The linter accepts the policy, and its replay refuses at most the given share of the clients.', {
    timeout: 120_000,
  }, async () => {
    for (const share of ['0%', '1%']) {
      const args = ['access.log.gz', '--suggest', 'per-ip', '--refuse-clients', share]
      const { stdout } = await replay(args)
      const [text, name, limit] = parts.exec(stdout)!
      expect(name).toBe('per-ip-suggested')
      const shadow = configOf(text.slice(0, -1)).replace('policies', "origin: 'zone', policies")
      await project.write('shadow/sluice.config.ts', shadow)
      const checked = await project.sluice(['check', '--config', 'shadow/sluice.config.ts'])
      expect(checked).toMatchObject({ code: 0, stderr: '' })
      await project.write('suggested.ts', configOf(text.replace(/, mode.*/, ' }')))
      const { total, clients } = await reportOf(['access.log.gz', '--config', 'suggested.ts'])
      const most = (Number.parseFloat(share) / 100) * clients.count
      expect(total.clients.high).toBeLessThanOrEqual(most)
      // The last client that passes has this peak: the lower end of the gap, or without one the highest.
      const [, low] = /the gap between (\d+)\s+and/.exec(stdout) ?? []
      const [, highest] = /highest peaks are [\d, ]*?(\d+)\./.exec(stdout)!
      const less = `limit: ${Number(low ?? highest) - 1}`
      await project.write(
        'smaller.ts',
        configOf(text.replace(/, mode.*/, ' }').replace(`limit: ${limit}`, less)),
      )
      const smaller = await reportOf(['access.log.gz', '--config', 'smaller.ts'])
      expect(smaller.total.clients.high).toBeGreaterThan(most)
    }
  })

  test('It needs no configuration.', async () => {
    await project.write('empty/access.log', apache)
    const { code, stdout } = await project.sluice(['replay', 'access.log', '--suggest', 'per-ip'], {
      cwd: 'empty',
    })
    expect(code).toBe(0)
    expect(stdout).toMatch(/\{ name: 'per-ip', limit: \d+, window: '1m', mode: 'shadow' \},/)
  })

  test('An unknown policy ends with a message.', async () => {
    expect(await replay(['access.log.gz', '--suggest', 'login'])).toEqual({
      code: 1,
      stdout: '',
      stderr: '--suggest: expected one of per-ip; got "login"\n',
    })
  })
})

describe('The gate', () => {
  test.each([
    [['--max-refused', '0.8%'], 1, /refused.*0\.8/],
    [['--max-clients', '1'], 1, /clients?.*\b1\b/],
    [['--max-refused', '0.9%', '--max-clients', '2'], 0, /^$/],
  ])(
    'With %j the exit code is %i, and the reason is on the standard error.',
    async (args, code, reason) => {
      const ended = await replay(['access.log.gz', ...args])
      expect(ended.code).toBe(code)
      expect(ended.stderr).toMatch(reason)
      expect(ended.stdout).toContain('75.97.9.59')
    },
  )
})

describe('A result without meaning', () => {
  test('A log that no policy can decide does not pass the gate.', async () => {
    await project.write(
      'keys.config.ts',
      configOf("{ name: 'by-key', limit: 5, window: '1m', key: 'header:x-api-key' }"),
    )
    const args = ['access.log.gz', '--config', 'keys.config.ts']
    const ended = await replay([...args, '--max-clients', '5'])
    expect(ended.code).toBe(1)
    expect(ended.stderr).toMatch(/^No policy was replayed, so nothing was checked/)
    expect(ended.stdout).toContain('No policy was replayed, so nothing is known about refusals.')
    expect((await replay(args)).code).toBe(0)
  })

  test('A log with the newest line first is reported as out of order.', async () => {
    const { code, stdout } = await replay(['-'], apache.split('\n').reverse().join('\n'))
    expect(code).toBe(0)
    expect(stdout).toMatch(/% of the requests are more than a minute out of order/)
    expect(stdout).toContain('Replay of standard input with')
  })

  test('Requests of one address are reported as those of a proxy.', async () => {
    const log = apache.replace(/^\S+/gm, '192.0.2.1')
    expect((await replay(['-'], log)).stdout).toContain('All requests have the same client.')
  })

  test('Lines without an HTTP request are counted.', async () => {
    const hello = '192.0.2.1 - - [17/May/2015:10:05:03 +0000] "\\x16\\x03\\x01" 400 0 "-" "-"\n'
    const { stdout } = await replay(['-'], hello.repeat(50) + apache)
    expect(stdout).toContain('50 lines without an HTTP request')
  })
})

describe('An anonymized log', () => {
  test('Its replay gives the same refusals, without the addresses, queries and user agents.', async () => {
    const before = await reportOf(['access.log.gz', '--anonymize', 'anonymous.log'])
    const text = await readFile(join(project.folder, 'anonymous.log'), 'utf8')
    for (const secret of ['75.97.9.59', 'Mozilla', '?']) expect(text).not.toContain(secret)
    const after = await reportOf(['anonymous.log'])
    expect(after.total).toEqual(before.total)
    expect(after.offenders.map(({ refused }) => refused)).toEqual(
      before.offenders.map(({ refused }) => refused),
    )
  })
})

test.each([[[]], [['--exact']]])(
  'With the options %j, Ctrl-C prints the report of the requests so far.',
  async (options) => {
    await rm(join(project.folder, 'read.log'), { force: true })
    const child = project.start(['replay', '-', '--anonymize', 'read.log', ...options])
    let [stdout, stderr] = ['', '']
    child.stdout.on('data', (part) => (stdout += part))
    child.stderr.on('data', (part) => (stderr += part))
    const ended = once(child, 'close')
    child.stdin.write(apache)
    // The log goes on, so the command waits for its next lines.
    await expect
      .poll(() => readFile(join(project.folder, 'read.log'), 'utf8'), { timeout: 50_000 })
      .toContain('\n')
    process.kill(-child.pid!, 'SIGINT')
    await ended
    expect({ code: child.exitCode, stderr }).toEqual({ code: 130, stderr: '' })
    expect(stdout).toContain('per-ip')
    expect(stdout).toMatch(/stopped/i)
  },
)

describe('Bad input', () => {
  // read-hostile.test.ts has more of them.
  test.each<[string, string | Uint8Array, RegExp]>([
    ['A binary file', Uint8Array.from({ length: 4_096 }, (_, index) => index % 7), /binary/i],
    ['An empty file', '', /empty/i],
    ['A truncated gzip file', compressed.subarray(0, 100_000), /damaged|truncated|ends/i],
  ])('%s ends with a message that says so.', async (_, input, message) => {
    await writeFile(join(project.folder, 'bad.log'), input)
    for (const ended of [await replay(['bad.log']), await replay(['-'], input)]) {
      expect(ended).toMatchObject({ code: 1, stdout: '' })
      expect(ended.stderr).toMatch(message)
      expect(ended.stderr).not.toMatch(/^ +at |node:|undefined/m)
    }
  })

  test('Without a configuration the message names the two ways on.', async () => {
    await mkdir(join(project.folder, 'bare'))
    await writeFile(join(project.folder, 'one.log'), '')
    const { code, stderr } = await project.sluice(['replay', '../one.log'], { cwd: 'bare' })
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr:
        'sluice.config.ts: the file does not exist. To write one: npx sluice init. A log alone can suggest a limit: --suggest per-ip\n',
    })
  })

  test.each<[string[], RegExp, number?]>([
    [['missing.log'], /^There is no file missing\.log\.$/m, 1],
    [['node_modules'], /node_modules.*folder/i, 1],
    [[], /^stdin is empty\. Name a log, such as access\.log, or pipe one into the command\.$/m, 1],
    [['access.log.gz', '--config', 'none.ts'], /none\.ts: the file does not exist/, 1],
    [['access.log.gz', '--format', 'xml'], /--format: expected one of auto, combined, .*"xml"/],
    [['access.log.gz', '--pattern', '%h %u'], /^--pattern: %h %u names no field/, 1],
    [['access.log.gz', '--pattern', '$ip $time', '--format', 'csv'], /--pattern .*--format/],
    [['access.log.gz', '--map', 'ip'], /--map: expected .*"ip"/],
    [['access.log.gz', '--max-refused', '0.1'], /--max-refused: expected a share like 0\.1%/],
    [['access.log.gz', '--max-clients=-1'], /--max-clients: expected a whole number, got "-1"/],
    [['access.log.gz', '--host', 'http://a.example'], /--host: expected a host like www/],
    [['access.log.gz', '--config', ''], /--config: expected a file, got ""/],
    [['access.log.gz', '--html', '.'], /--html: expected a file, got "\."/],
    [['access.log.gz', '--html', 'none/out.html'], /--html: the folder .*none does not exist/],
    [['access.log.gz', '--anonymize', './access.log.gz'], /--anonymize: .* is the log/],
  ])('The arguments %j end with one message.', async (args, message, code = 2) => {
    const { stderr, ...ended } = await replay(args)
    expect(ended).toEqual({ code, stdout: '' })
    expect(stderr).toMatch(message)
    expect(stderr.trim().split('\n')).toHaveLength(1)
  })
})
