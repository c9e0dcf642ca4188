import { expect, test } from 'vitest'
import { algorithms } from './schedules.ts'
import { useServer } from './server.ts'
import { newSubject } from './subjects.ts'

const server = useServer()
const now = '1789000000000'

const columns = [
  'request',
  'mode',
  'key',
  'tag',
  'algorithm',
  'limit',
  'window',
  'burst',
  'cost',
  'align',
  'receipt',
] as const

type Columns = Partial<Record<(typeof columns)[number], string>>

const usual: Required<Columns> = {
  request: '1',
  mode: 'take',
  key: '1',
  tag: 't',
  algorithm: 'fixed-window',
  limit: '10',
  window: '1000',
  burst: '10',
  cost: '1',
  align: 'clock',
  receipt: '',
}

const row = (changed: Columns = {}): string[] => {
  const all = { ...usual, ...changed }
  return columns.map((column) => all[column])
}

const newKey = () => `sluice:1:{${newSubject()}}`

/** Sends arguments that are to be refused, and sees that nothing was written. */
async function refusal(keys: string[], args: string[]): Promise<string> {
  const answer = await server.evaluate(keys, args).then(String, (error) => String(error.message))
  if (keys.length > 0) expect(await server.send('EXISTS', ...keys)).toBe(0)
  return answer
}

test('the usual row is accepted', async () => {
  expect(await server.evaluate([newKey()], [now, ...row()])).toEqual([
    1_789_000_000_000, 1, 9, 0, 1000, 1000,
  ])
})

const numbers = ['nan', '-nan', 'inf', '-inf', '1e999', '1.5', '-1', '', ' ', 'x', `${2 ** 51 + 1}`]

const wrong: [column: (typeof columns)[number], values: string[]][] = [
  ['request', [...numbers, '0']],
  ['mode', ['', 'TAKE', 'give_back', 'peek']],
  ['key', [...numbers, '0', '2']],
  ['tag', ['', 'a:b', 'a;b', 'a b', 'ä', 'a\n', '%w', 'a\0b']],
  ['algorithm', ['', 'fixed_window', 'leaky-bucket', '__index']],
  ['limit', [...numbers, '0']],
  ['window', [...numbers, '0']],
  ['burst', [...numbers, '0']],
  ['cost', numbers],
  ['align', ['', 'Clock', 'none']],
  ['receipt', ['0', now, 'nan', 'x']],
]

test.each(wrong)('refuses a wrong %s, names it, writes nothing', async (column, values) => {
  for (const value of values) {
    const args = [now, ...row(), ...row({ request: '2', [column]: value })]
    const answer = await refusal([newKey()], args)
    expect(answer, value).toMatch(new RegExp(`^ERR sluice: row 2: .*${column}`))
  }
})

test('refuses a wrong now', async () => {
  for (const value of numbers.filter((value) => value !== '')) {
    expect(await refusal([newKey()], [value, ...row()]), value).toMatch(/^ERR sluice: .*now/)
  }
})

test('refuses a wrong receipt', async () => {
  for (const value of numbers.filter((value) => value !== '')) {
    const args = [now, ...row({ mode: 'give-back', receipt: value })]
    expect(await refusal([newKey()], args), value).toMatch(/^ERR sluice: row 1: .*receipt/)
  }
})

test.each([
  ['limit', { limit: `${2 ** 51}`, window: '2' }],
  ['limit', { limit: '2', window: `${2 ** 51}` }],
  ['limit', { limit: '3002399751580331', window: '1' }],
  ['limit', { limit: '1000799917193444', window: '3' }],
  ['burst', { burst: '1000799917193444', window: '3' }],
])('refuses a product of %s and window above 2^53 / 3', async (_, changed) => {
  expect(await refusal([newKey()], [now, ...row(changed)])).toMatch(/^ERR sluice: row 1: /)
})

test('accepts products up to 2^53 / 3', async () => {
  const most = { limit: `${2 ** 26}`, burst: `${2 ** 25}`, window: `${2 ** 25}` }
  const largest = { limit: `${2 ** 51}`, burst: `${2 ** 51}`, window: '1', cost: `${2 ** 51}` }
  const thirds = { limit: '1000799917193443', burst: '1000799917193443', window: '3' }
  for (const changed of [most, largest, thirds]) {
    const reply = await server.evaluate([newKey()], [now, ...row(changed)])
    expect((reply as number[])[1]).toBe(1)
  }
})

const key = newKey()

const lists: [claim: string, keys: string[], args: string[]][] = [
  ['no keys', [], [now, ...row()]],
  ['129 keys', Array.from({ length: 129 }, newKey), [now, ...row()]],
  ['a key twice', [key, newKey(), key], [now, ...row()]],
  ['no arguments', [key], []],
  ['no rows', [key], [now]],
  ['a row cut short', [key], [now, ...row(), ...row().slice(1)]],
  ['a column too many', [key], [now, ...row(), '']],
  ['a tag twice in one request', [key], [now, ...row(), ...row()]],
  [
    'a tag twice in one request, not side by side',
    [key],
    [now, ...row(), ...row({ tag: 'u' }), ...row()],
  ],
  ['two modes in one request', [key], [now, ...row(), ...row({ tag: 'u', mode: 'shadow' })]],
  ['requests out of order', [key], [now, ...row({ request: '2' }), ...row()]],
  [
    'a request that comes back',
    [key],
    [now, ...row(), ...row({ request: '2' }), ...row({ tag: 'u' })],
  ],
  [
    '129 requests',
    [key],
    [now, ...Array.from({ length: 129 }, (_, i) => row({ request: `${i + 1}` })).flat()],
  ],
]

test.each(lists)('refuses %s', async (_, keys, args) => {
  expect(await refusal(keys, args)).toMatch(/^ERR sluice: /)
})

test('accepts 128 keys and 128 requests, and one tag in several of either', async () => {
  const keys = Array.from({ length: 128 }, newKey)
  const rows = keys.flatMap((_, i) => row({ request: `${i + 1}`, key: `${i + 1}` }))
  expect(await server.evaluate(keys, [now, ...rows])).toHaveLength(1 + 5 * 128)
})

test.each(['2;t:1:1:1;', 'x', ''])('refuses a record of unknown format: %j', async (text) => {
  const key = newKey()
  await server.send('SET', key, text)
  await expect(server.evaluate([newKey(), key], [now, ...row({ key: '2' })])).rejects.toThrow(
    /^ERR sluice: key 2 /,
  )
  expect(await server.send('GET', key)).toBe(text)
})

test('a log key of another type fails before an earlier request is charged', async () => {
  const [record, other] = [newKey(), `${newKey()}:log:t`]
  await server.send('SET', other, 'text')
  const rows = [
    row({ key: '1' }),
    row({ key: '2', algorithm: 'sliding-log' }),
    row({ request: '2', key: '3', algorithm: 'sliding-log' }),
  ]
  const keys = [record, `${record}:log:t`, other]
  await expect(server.evaluate(keys, [now, ...rows.flat()])).rejects.toThrow(/^WRONGTYPE/)
  expect(await server.send('EXISTS', record, `${record}:log:t`)).toBe(0)
})

test.each(algorithms)(
  '%s: a row that is well writes nothing beside one that is not',
  async (name) => {
    const keys = [newKey(), `${newKey()}:log:t`]
    const good = row({ algorithm: name, key: name === 'sliding-log' ? '2' : '1' })
    const answer = await refusal(keys, [now, ...good, ...row({ tag: 'u', cost: '-1' })])
    expect(answer).toBe('ERR sluice: row 2: unexpected cost')
  },
)

const record = newKey()
const log = (changed: Columns) => row({ algorithm: 'sliding-log', ...changed })

test.each([
  ['a record as the key of a log', [record], log({})],
  ['the log of another tag', [`${record}:log:u`], log({})],
  ['a log as the key of a record', [`${record}:log:t`], row()],
])('refuses %s', async (_, keys, args) => {
  expect(await refusal(keys, [now, ...args])).toMatch(/^ERR sluice: row 1: .*key/)
})

test('accepts a log of 10,000 units, and no longer one', async () => {
  const key = `${record}:log:t`
  const longest = log({ limit: '10000', cost: '10000' })
  const [, allowed, remaining] = (await server.evaluate([key], [now, ...longest])) as number[]
  expect([allowed, remaining]).toEqual([1, 0])
  const longer = [now, ...log({ limit: '10001' })]
  expect(await refusal([`${newKey()}:log:t`], longer)).toMatch(/^ERR sluice: row 1: .*limit/)
})
