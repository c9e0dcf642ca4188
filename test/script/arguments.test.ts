import { expect, test } from 'vitest'
import { algorithms } from '../support/schedules.ts'
import { useServer } from '../support/server.ts'
import { newSubject } from '../support/subjects.ts'

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
  'align', // slot or period for some algorithms
  'decided_at',
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
  decided_at: '',
}

const row = (changed: Columns = {}): string[] => {
  const all = { ...usual, ...changed }
  return columns.map((column) => all[column])
}

const newKey = () => `sluice:1:{${newSubject()}}`

/** Sends invalid arguments, checks that no key was written, and returns the error message. */
async function refusal(keys: string[], args: string[]): Promise<string> {
  const answer = await server.evaluate(keys, args).then(String, (error) => String(error.message))
  if (keys.length > 0) expect(await server.send('EXISTS', ...keys)).toBe(0)
  return answer
}

test('A valid row is accepted.', async () => {
  expect(await server.evaluate([newKey()], [now, ...row()])).toEqual([
    1_789_000_000_000, 1, 9, 0, 1000, 1000,
  ])
})

const numbers = ['nan', '-nan', 'inf', '-inf', '1e999', '1.5', '-1', '', ' ', 'x', `${2 ** 51 + 1}`]

const wrong: [column: (typeof columns)[number], values: string[]][] = [
  ['request', [...numbers, '0']],
  ['mode', ['', 'TAKE', 'give-back', 'shadow', 'idempotency', 'un-ban']],
  ['key', [...numbers, '0', '2']],
  ['tag', ['', 'a:b', 'a;b', 'a b', 'ä', 'a\n', '%w', 'a\0b']],
  ['algorithm', ['', 'idempotency', 'fixed_window', 'gcra', 'leaky-bucket', '__index']],
  ['limit', [...numbers, '0']],
  ['window', [...numbers, '0']],
  ['burst', [...numbers, '0']],
  ['cost', numbers],
  ['align', ['', 'Clock', 'none']],
  ['decided_at', ['0', now, 'nan', 'x']],
]

test.each(wrong)(
  'A row with an invalid %s is refused with an error that names the column, and writes nothing.',
  async (column, values) => {
    for (const value of values) {
      const args = [now, ...row(), ...row({ request: '2', [column]: value })]
      const answer = await refusal([newKey()], args)
      expect(answer, value).toMatch(new RegExp(`^ERR sluice: row 2: .*${column}`))
    }
  },
)

test('An invalid `now` is refused.', async () => {
  for (const value of numbers.filter((value) => value !== '')) {
    expect(await refusal([newKey()], [value, ...row()]), value).toMatch(/^ERR sluice: .*now/)
  }
})

test('An invalid decided_at of a refund is refused.', async () => {
  for (const value of numbers.filter((value) => value !== '')) {
    const args = [now, ...row({ mode: 'refund', decided_at: value })]
    expect(await refusal([newKey()], args), value).toMatch(/^ERR sluice: row 1: .*decided_at/)
  }
})

test.each([
  ['limit', { limit: `${2 ** 51}`, window: '2' }],
  ['limit', { limit: '2', window: `${2 ** 51}` }],
  ['limit', { limit: '3002399751580331', window: '1' }],
  ['limit', { limit: '1000799917193444', window: '3' }],
  ['burst', { burst: '1000799917193444', window: '3' }],
])('A product of %s and window above 2^53 / 3 is refused.', async (_, changed) => {
  expect(await refusal([newKey()], [now, ...row(changed)])).toMatch(/^ERR sluice: row 1: /)
})

test('Products of limit or burst and window up to 2^53 / 3 are accepted.', async () => {
  const most = { limit: `${2 ** 26}`, burst: `${2 ** 25}`, window: `${2 ** 25}` }
  const largest = { limit: `${2 ** 51}`, burst: `${2 ** 51}`, window: '1', cost: `${2 ** 51}` }
  const thirds = { limit: '1000799917193443', burst: '1000799917193443', window: '3' }
  for (const changed of [most, largest, thirds]) {
    const reply = await server.evaluate([newKey()], [now, ...row(changed)])
    expect((reply as number[])[1]).toBe(1)
  }
})

const calendar = (period: string, changed: Columns = {}) => row({ align: period, ...changed })

test.each([
  ['two times', '1,2'],
  ['four times', '1,2,3,4'],
  ['no times', ',,'],
  ['a fraction', '1,2,3.5'],
  ['a time below 0', '-1,2,3'],
  ['a space', '1, 2,3'],
  ['an empty period', '1,1,3'],
  ['periods out of order', '1,3,2'],
  ['a time beyond 2^51', `1,2,${2 ** 51 + 1}`],
])('A calendar period with %s is refused.', async (_, period) => {
  const answer = await refusal([newKey()], [now, ...calendar(period)])
  expect(answer).toBe('ERR sluice: row 1: unexpected period')
})

test('A period is refused for any algorithm except the fixed window, and with a limit too large for the longer period.', async () => {
  const sliding = calendar('1,2,3', { algorithm: 'sliding-window' })
  expect(await refusal([newKey()], [now, ...sliding])).toMatch(/row 1: unexpected period/)
  const most = Math.floor(2 ** 53 / 3)
  for (const periods of ['0,3,4', '0,1,4']) {
    const [limit, more] = [Math.floor(most / 3), Math.floor(most / 3) + 1].map(String)
    const large = { limit: limit!, window: '1', burst: '1' }
    expect(await server.evaluate([newKey()], ['0', ...calendar(periods, large)])).toHaveLength(6)
    const larger = calendar(periods, { ...large, limit: more! })
    expect(await refusal([newKey()], ['0', ...larger])).toMatch(/row 1: unexpected period/)
  }
})

const slots = (slot: string, changed: Columns = {}) =>
  row({ algorithm: 'concurrency', align: slot, ...changed })
const newSlots = () => `${newKey()}:slots:t`

test('A malformed slot id, a wrong key of slots, and more than 10,000 slots are refused.', async () => {
  for (const slot of ['', 'a:1', 'a b', 'x'.repeat(65), '1,2,3']) {
    const answer = await refusal([newSlots()], [now, ...slots(slot)])
    expect(answer, slot).toBe('ERR sluice: row 1: unexpected slot')
  }
  const refund = slots('', { mode: 'refund' })
  expect(await refusal([newSlots()], [now, ...refund])).toMatch(/unexpected slot/)
  for (const key of [newKey(), `${newKey()}:slots:u`, `${newKey()}:log:t`]) {
    expect(await refusal([key], [now, ...slots('id')])).toMatch(/unexpected key/)
  }
  expect(await refusal([newSlots()], [now, ...slots('id', { limit: '10001' })])).toMatch(
    /unexpected limit/,
  )
})

test('Slot ids of 64 characters, slot ids that look like alignments, and a peek without a slot id are accepted.', async () => {
  for (const slot of ['x'.repeat(64), 'clock', '-', '_9']) {
    expect(await server.evaluate([newSlots()], [now, ...slots(slot)])).toHaveLength(6)
  }
  const peek = slots('', { mode: 'peek' })
  expect(await server.evaluate([newSlots()], [now, ...peek])).toHaveLength(6)
})

const ban = (changed: Columns = {}) => row({ algorithm: 'penalty', tag: 'p', ...changed })

const wrongPenalties: [claim: string, rows: string[][], unexpected: string][] = [
  ['without a row before it', [ban()], 'row 1: unexpected algorithm'],
  [
    'in another request than its row',
    [row(), ban({ request: '2' })],
    'row 2: unexpected algorithm',
  ],
  [
    'that follows another penalty',
    [row(), ban(), ban({ tag: 'q' })],
    'row 3: unexpected algorithm',
  ],
  ['with the key of another subject', [row(), ban({ key: '2' })], 'row 2: unexpected key'],
  ['in a refund', [row({ mode: 'refund' }), ban({ mode: 'refund' })], 'row 2: unexpected mode'],
  ['with a maximum of 0', [row(), ban({ cost: '0' })], 'row 2: unexpected cost'],
  ['with the tag of its row', [row(), ban({ tag: 't' })], 'row 2: unexpected tag'],
]

test.each(wrongPenalties)('A penalty %s is refused.', async (_, rows, unexpected) => {
  const answer = await refusal([newKey(), newKey()], [now, ...rows.flat()])
  expect(answer).toContain(`ERR sluice: ${unexpected}`)
})

test('A penalty accepts every number up to 2^51.', async () => {
  const most = `${2 ** 51}`
  const long = ban({ limit: '1', window: most, burst: most, cost: most })
  const rows = [row({ cost: '11' }), long].flat()
  const reply = (await server.evaluate([newKey()], [now, ...rows])) as number[]
  expect(reply.slice(6)).toEqual([0, 0, 2 ** 51, 0, 0])
  const many = ban({ limit: most, window: most, burst: '1', cost: '1' })
  expect(await server.evaluate([newKey()], [now, ...row(), ...many])).toHaveLength(11)
})

test('The penalty of a log or of slots must have the key of the record of the same subject.', async () => {
  const key = newKey()
  for (const [algorithm, own] of [
    ['sliding-log', `${key}:log:t`],
    ['concurrency', `${key}:slots:t`],
  ] as const) {
    const rows = [row({ algorithm }), ban({ key: '2' })].flat()
    expect(await server.evaluate([own, key], [now, ...rows])).toHaveLength(11)
    const stranger = await server.evaluate([own, newKey()], [now, ...rows]).then(String, String)
    expect(stranger).toContain('ERR sluice: row 2: unexpected key')
  }
})

test('A slots key of another type fails before an earlier request is charged.', async () => {
  const [record, other] = [newKey(), newSlots()]
  await server.send('SET', other, 'text')
  const rows = [row(), slots('id', { request: '2', key: '2' })].flat()
  await expect(server.evaluate([record, other], [now, ...rows])).rejects.toThrow(/^WRONGTYPE/)
  expect(await server.send('EXISTS', record)).toBe(0)
})

const unused = { limit: '', burst: '', cost: '', align: '' }
const idempotency = (changed: Columns = {}) =>
  row({
    request: '0',
    mode: 'idempotency',
    key: '2',
    algorithm: 'idempotency',
    ...unused,
    ...changed,
  })

const wrongIdempotency: [column: string, changed: Columns, ...rows: string[][]][] = [
  ['request', { request: '1' }, row()],
  ['mode', { mode: 'take' }, row()],
  ['key', { key: '' }, row()],
  ['key', { key: '4' }, row()],
  ['key', { key: '3' }, row()],
  ['tag', { tag: '' }, row()],
  ['tag', { tag: 'a:b' }, row()],
  ['tag', { tag: 'x'.repeat(65) }, row()],
  ['window', { window: '0' }, row()],
  ['window', { window: 'nan' }, row()],
  ['algorithm (no other rows)', {}],
]

test.each(wrongIdempotency)(
  'An idempotency key with an unexpected %s is refused: %j.',
  async (column, changed, ...rows) => {
    const keys = [newKey(), newKey(), `${newKey()}:log:t`]
    const answer = await refusal(keys, [now, ...idempotency(changed), ...rows.flat()])
    expect(answer).toBe(`ERR sluice: row 1: unexpected ${column}`)
  },
)

test('An idempotency key may be the 129th key of a call.', async () => {
  const keys = Array.from({ length: 129 }, newKey)
  const some = { key: '129', tag: 't' }
  const more = [...keys, newKey()]
  expect(await refusal(more, [now, ...idempotency(some), ...row()])).toMatch(/^ERR sluice: KEYS: /)
  expect(await server.evaluate(keys, [now, ...idempotency(some), ...row()])).toHaveLength(11)
})

test('The row of an idempotency key comes first, has its own key, and is counted in row numbers.', async () => {
  const keys = [newKey(), newKey()]
  const second = await refusal(keys, [now, ...row(), ...idempotency()])
  expect(second).toMatch(/^ERR sluice: row 2: unexpected request/)
  const shared = await refusal(keys, [now, ...idempotency(), ...row({ key: '2' })])
  expect(shared).toBe('ERR sluice: row 2: unexpected key')
  const third = await refusal(keys, [
    now,
    ...idempotency(),
    ...row(),
    ...row({ cost: '-1', tag: 'u' }),
  ])
  expect(third).toBe('ERR sluice: row 3: unexpected cost')
  const all = await server.evaluate(keys, [now, ...idempotency({ tag: 'x'.repeat(64) }), ...row()])
  expect(all).toEqual([Number(now), 0, 0, 0, 0, 0, 1, 9, 0, 1000, 1000])
})

const key = newKey()

const lists: [claim: string, keys: string[], args: string[]][] = [
  ['no keys', [], [now, ...row()]],
  ['129 keys', Array.from({ length: 129 }, newKey), [now, ...row()]],
  ['a repeated key', [key, newKey(), key], [now, ...row()]],
  ['no arguments', [key], []],
  ['no rows', [key], [now]],
  ['an incomplete row', [key], [now, ...row(), ...row().slice(1)]],
  ['an extra column', [key], [now, ...row(), '']],
  ['a tag repeated in one request', [key], [now, ...row(), ...row()]],
  [
    'a tag repeated in rows of one request that are not adjacent',
    [key],
    [now, ...row(), ...row({ tag: 'u' }), ...row()],
  ],
  ['two modes in one request', [key], [now, ...row(), ...row({ tag: 'u', mode: 'follow' })]],
  ['requests out of order', [key], [now, ...row({ request: '2' }), ...row()]],
  [
    'a request whose rows are not adjacent',
    [key],
    [now, ...row(), ...row({ request: '2' }), ...row({ tag: 'u' })],
  ],
  [
    '129 requests',
    [key],
    [now, ...Array.from({ length: 129 }, (_, i) => row({ request: `${i + 1}` })).flat()],
  ],
]

test.each(lists)('A call with %s is refused.', async (_, keys, args) => {
  expect(await refusal(keys, args)).toMatch(/^ERR sluice: /)
})

test('A call may have 128 keys and 128 requests, and one tag for several of them.', async () => {
  const keys = Array.from({ length: 128 }, newKey)
  const rows = keys.flatMap((_, i) => row({ request: `${i + 1}`, key: `${i + 1}` }))
  expect(await server.evaluate(keys, [now, ...rows])).toHaveLength(1 + 5 * 128)
})

test.each(['2;t:1:1:1;', 'x', ''])(
  'A record of an unknown format is refused and keeps its value: %j.',
  async (text) => {
    const key = newKey()
    await server.send('SET', key, text)
    await expect(server.evaluate([newKey(), key], [now, ...row({ key: '2' })])).rejects.toThrow(
      /^ERR sluice: key 2 /,
    )
    expect(await server.send('GET', key)).toBe(text)
  },
)

test('A log key of another type fails before an earlier request is charged.', async () => {
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

test.each(algorithms)('%s: A valid row writes nothing if another row is invalid.', async (name) => {
  const keys = [newKey(), `${newKey()}:log:t`]
  const good = row({ algorithm: name, key: name === 'sliding-log' ? '2' : '1' })
  const answer = await refusal(keys, [now, ...good, ...row({ tag: 'u', cost: '-1' })])
  expect(answer).toBe('ERR sluice: row 2: unexpected cost')
})

const record = newKey()
const log = (changed: Columns) => row({ algorithm: 'sliding-log', ...changed })

test.each([
  ['a record as the key of a log', [record], log({})],
  ['the log key of another tag', [`${record}:log:u`], log({})],
  ['a log as the key of a record', [`${record}:log:t`], row()],
])('A call with %s is refused.', async (_, keys, args) => {
  expect(await refusal(keys, [now, ...args])).toMatch(/^ERR sluice: row 1: .*key/)
})

test('A log of 10,000 units is accepted, and a longer log is refused.', async () => {
  const key = `${record}:log:t`
  const longest = log({ limit: '10000', cost: '10000' })
  const [, allowed, remaining] = (await server.evaluate([key], [now, ...longest])) as number[]
  expect([allowed, remaining]).toEqual([1, 0])
  const longer = [now, ...log({ limit: '10001' })]
  expect(await refusal([`${newKey()}:log:t`], longer)).toMatch(/^ERR sluice: row 1: .*limit/)
})
