import { describe, expect, test } from 'vitest'
import type { Fact, LogLine } from '../../../cli/replay/line.ts'
import { createSuggester } from '../../../cli/replay/suggest/suggest.ts'
import {
  type ConfigOptions,
  defineConfig,
  type PolicyOptions,
} from '../../../src/core/config/options.ts'
import { lint } from '../../../src/lint/lint.ts'

const START = Date.UTC(2026, 0, 2)
const line = (second: number, fields: Partial<LogLine> = {}): LogLine => ({
  time: START + second * 1_000,
  ...{ ip: '192.0.2.1', method: 'GET', target: '/', status: 200, ...fields },
})

async function suggestion(
  config: ConfigOptions,
  policy: string,
  lines: LogLine[],
  {
    refuse,
    facts = ['ip', 'status'] as Fact[],
    wholeSeconds = true,
  }: { refuse?: number | undefined; facts?: Fact[]; wholeSeconds?: boolean } = {},
) {
  const log = { facts: new Set(facts), wholeSeconds }
  const suggester = createSuggester(defineConfig(config), log, { policy, refuse })
  await suggester.add(lines)
  return suggester.result()
}
const login: PolicyOptions = {
  name: 'login',
  algorithm: 'token-bucket',
  limit: 1,
  burst: 3,
  window: '1h',
  match: { path: '/login', method: 'POST' },
  onStoreError: 'deny',
  penalty: { after: 3, within: '1m', ban: '1h' },
}
const attempt = { method: 'POST', target: '/login' }

describe('A suggestion', () => {
  test('It counts only the requests that the policy applies to, in its own window.', async () => {
    const lines = [
      line(0),
      line(1, attempt),
      line(2, attempt),
      line(3, { ...attempt, ip: '192.0.2.2' }),
    ]
    const found = (await suggestion({ policies: [login] }, 'login', lines))!
    expect(found).toMatchObject({
      ...{ policy: 'login', countedBy: 'ip', keys: 2 },
      suggested: { limit: 3, windowMs: 3_600_000, refusedKeys: 0 },
      gap: { below: 2, above: null, highest: [1, 2] },
      refused: [],
    })
    expect(found.peaks.map(({ max }) => max)).toEqual([2, 2, 2, 2, 2])
    const policies = new Function(`return [${found.text}]`)()
    expect(policies).toEqual([
      {
        ...{ name: 'login-suggested', limit: 3, window: '1h', mode: 'shadow' },
        match: { path: '/login', method: 'POST' },
        onStoreError: 'deny',
      },
    ])
    expect(lint({ origin: 'zone', policies: [login, ...policies] })).toEqual([])
  })

  test('A window that is not in the list is added.', async () => {
    const policy: PolicyOptions = { name: 'per-ip', limit: 1, window: '15m' }
    const found = await suggestion({ policies: [policy] }, 'per-ip', [line(0)])
    expect(found!.peaks.map(({ windowMs }) => windowMs)).toContain(900_000)
    expect(found!.text).toContain("window: '15m'")
  })

  test.each<[string, Partial<PolicyOptions>, string]>([
    ['A calendar window', { algorithm: 'fixed-window', window: 'month' }, "window: '1d'"],
    ['Concurrency', { algorithm: 'concurrency', window: '30s' }, "window: '1m'"],
  ])('%s gives way to a window that slides.', async (_, fields, text) => {
    const policy = { name: 'per-ip', limit: 1, window: '1m', ...fields } as PolicyOptions
    const found = await suggestion({ policies: [policy] }, 'per-ip', [line(0)])
    expect(found!.text).toContain(text)
  })

  test('Of responses that are not counted, only one at a time counts. An unknown status counts.', async () => {
    const policy: PolicyOptions = { name: 'failures', limit: 1, window: '1m', countOnly: 401 }
    const statuses = [200, 200, 200, 401, 401, undefined, 200]
    const lines = statuses.map((status, index) => line(index * 0.01, { status }))
    const found = await suggestion({ policies: [policy] }, 'failures', lines)
    expect(found!.gap.below).toBe(4)
  })

  test('The limit is at least the highest cost, which the linter requires.', async () => {
    const policy: PolicyOptions = {
      name: 'per-ip',
      limit: 9,
      window: '1m',
      cost: [{ path: '/report', cost: 7 }],
    }
    const found = await suggestion({ policies: [policy] }, 'per-ip', [line(0)])
    expect(found!.suggested.limit).toBe(7)
  })

  test('The requests of a whole second count as if they came at once.', async () => {
    const lines = [line(59.9), line(60.1)]
    const [exact, whole] = await Promise.all(
      [false, true].map((wholeSeconds) =>
        suggestion({ policies: [] }, 'per-ip', lines, { wholeSeconds }),
      ),
    )
    expect(exact!.peaks[0]!.max).toBe(2)
    expect(whole!.peaks[0]!.max).toBe(2)
    expect(whole!.gap.below).toBe(2)
  })

  /** A request of each client at once, as often as its number says. */
  const peaksOf = (...peaks: number[]) =>
    peaks.flatMap((peak, client) =>
      Array.from({ length: peak }, () => line(0, { ip: `192.0.2.${client}` })),
    )
  const many = Array<number>(20).fill(2)

  test.each<[string, number[], number | undefined, object]>([
    [
      'With few clients it is in the widest gap, and names whom it would refuse.',
      [...many, 3, 34, 1_555],
      undefined,
      {
        suggested: { limit: 230, refusedKeys: 1 },
        gap: { below: 34, above: 1_555, highest: [2, 3, 34, 1_555] },
        refused: [{ client: '192.0.2.22', peak: 1_555 }],
      },
    ],
    [
      'It is in the gap above the clients that a given share leaves.',
      [...many, 3, 34, 1_555],
      0.1,
      {
        suggested: { limit: 10, refusedKeys: 2 },
        gap: { below: 3, above: 34 },
        refused: [
          { client: '192.0.2.22', peak: 1_555 },
          { client: '192.0.2.21', peak: 34 },
        ],
      },
    ],
    [
      'Without a wide gap it refuses no client, with room above the highest.',
      [...many, 3, 5, 9],
      undefined,
      { suggested: { limit: 14, refusedKeys: 0 }, gap: { below: 9, above: null }, refused: [] },
    ],
    [
      'A share of 0 refuses no client, whatever the gap.',
      [...many, 1_555],
      0,
      { suggested: { limit: 2_300, refusedKeys: 0 } },
    ],
    [
      'Two clients are too few for a gap.',
      [3, 300],
      undefined,
      { suggested: { limit: 450, refusedKeys: 0 } },
    ],
    [
      'Neighbouring peaks leave no room between them.',
      [...many, 3],
      0.05,
      { suggested: { limit: 2, refusedKeys: 1 }, gap: { below: 2, above: 3 } },
    ],
  ])('%s', async (_, peaks, refuse, expected) => {
    const found = await suggestion({ policies: [] }, 'per-ip', peaksOf(...peaks), { refuse })
    expect(found).toMatchObject(expected)
  })

  test('A request that an entry of deny refuses is not counted.', async () => {
    const config: ConfigOptions = { policies: [], deny: [{ name: 'bad', path: '/bad' }] }
    expect(await suggestion(config, 'per-ip', [line(0, { target: '/bad' })])).toBeUndefined()
  })

  test('A policy whose key the log does not have is an error.', async () => {
    const policy: PolicyOptions = { name: 'keyed', limit: 1, window: '1m', key: 'header:x-api-key' }
    await expect(suggestion({ policies: [policy] }, 'keyed', [line(0)])).rejects.toThrow(
      /^--suggest keyed: .*x-api-key/,
    )
  })
})
