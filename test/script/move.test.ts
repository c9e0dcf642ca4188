/** The scripts that move keys from one shard to another. */
import { beforeEach, describe, expect, test } from 'vitest'
import { receiptOf } from '../../src/shards/move/places.ts'
import { moveScripts } from '../support/move-scripts.ts'
import { useServer } from '../support/server.ts'

const server = useServer()
const { send } = server
const { begin, depart, arrive, arriveAll, settle, settleAll, call } = moveScripts(server)

beforeEach(() => send('FLUSHALL').then(() => begin()))

const record = '1;t:1789000000000:60000:12;'
const key = 'sluice:1:{old}'
const place = 'sluice:1:{new}'
const take = ['3::', 'take 1;t:fixed,5,60000,,1']
const once = ['3:idempotency:', 'print:60000', 'take 2;t:fixed,5,60000,,1']

/** Departs a key that has a value. */
const departed = async (value = record) => {
  await send('SET', key, value, 'PX', '60000')
  return (await depart(key))[0]!
}
const ttl = async (key: string) => Number(await send('PTTL', key))
const entries = (key: string) => send('ZRANGE', key, '0', '-1', 'WITHSCORES').catch(String)

describe('the script with the guard', () => {
  test('It decides at the old place until the move has begun.', async () => {
    await send('DEL', 'sluice:1:{move}')
    expect(await call([key], take)).toMatch(/^\d+ \+/)
    await begin('another>move')
    expect(await call([key], take)).toMatch(/^\d+ \+.*:2;$/)
  })

  test('It refuses a key that moves, without a charge, once the move has begun.', async () => {
    expect(await call([key], take)).toBe('ERR sluice: key moved')
    expect(await send('EXISTS', key)).toBe(0)
  })

  test('It refuses a log that moves, without reading it.', async () => {
    await send('ZADD', 'log', '1', '1:00001')
    expect(await call(['log'], ['3:special:', 'take 1;t:log,5,60000,,1'])).toBe(
      'ERR sluice: key moved',
    )
  })

  test('It decides a key that stays.', async () => {
    expect(await call([key], take, false)).toMatch(/^\d+ [+-]/)
    expect(await send('EXISTS', key)).toBe(1)
  })

  test('It repeats the stored reply of a call from before the move.', async () => {
    await send('DEL', 'sluice:1:{move}')
    const keys = ['sluice:1:{once}', key]
    const [decidedAt, , text] = String(await call(keys, once)).split(' ')
    await begin()
    expect(await call(keys, once)).toBe(`${decidedAt} 1 ${text}`)
  })

  test.each([
    ['has run out', 1000],
    ['ends within a second', Date.now()],
  ])('It refuses a call whose stored reply %s.', async (_, runOut) => {
    const reply = `idem2;print:${runOut}:1000 +1000:60000:1;`
    await send('SET', 'sluice:1:{once}', reply)
    expect(await call(['sluice:1:{once}', key], once)).toBe('ERR sluice: key moved')
  })

  test('It compares the end of a stored reply with the time of the call.', async () => {
    await send('SET', 'sluice:1:{once}', 'idem2;print:5000:1000 +1000:60000:1;')
    const at = (now: number) => [`3:idempotency:${now}`, ...once.slice(1)]
    const keys = ['sluice:1:{once}', key]
    expect(await call(keys, at(4999))).toBe('1000 1 +1000:60000:1;')
    expect(await call(keys, at(5000))).toBe('ERR sluice: key moved')
  })

  test('It refuses a call without a stored reply, and one whose key holds something else.', async () => {
    expect(await call(['sluice:1:{once}', key], once)).toBe('ERR sluice: key moved')
    await send('SET', 'sluice:1:{once}', '1;t:9789000000000:60000:12;')
    expect(await call(['sluice:1:{once}', key], once)).toBe('ERR sluice: key moved')
  })
})

describe('the script that marks keys as moved', () => {
  test('It returns the value and the TTL, and leaves the value in a mark with that TTL.', async () => {
    const [life, mark] = await departed()
    expect([mark]).toEqual([expect.stringMatching(/^moved;\d{13};1;t:1789000000000:60000:12;$/)])
    expect(Math.abs(Number(mark.split(';')[1]) - Date.now())).toBeLessThan(60_000)
    expect(life).toBeGreaterThan(30_000)
    expect(life).toBeLessThanOrEqual(60_000)
    expect(await send('GET', key)).toBe(mark)
    expect(await ttl(key)).toBeGreaterThan(30_000)
  })

  test('It returns the same mark again.', async () => {
    const [, mark] = await departed()
    expect((await depart(key))[0]![1]).toBe(mark)
  })

  test('It does nothing unless this move has begun.', async () => {
    await send('SET', key, record, 'PX', '60000')
    for (const name of ['another>move', undefined]) {
      if (name) await begin(name)
      else await send('DEL', 'sluice:1:{move}')
      expect((await depart(key))[0]![1]).toBe('ERR sluice: move: it has not begun')
      expect(await send('GET', key)).toBe(record)
    }
  })

  test('It returns nothing for a missing key, a settled mark, a stored reply and a foreign type.', async () => {
    await send('SET', 'settled', 'moved;1789000000000;')
    await send('SET', 'reply', 'idem2;print:1:1 +')
    await send('HSET', 'foreign', 'a', '1')
    const keys = ['missing', 'settled', 'reply', 'foreign']
    expect(await depart(...keys)).toEqual(keys.map(() => [1, '']))
    expect(await send('MGET', 'settled', 'reply')).toEqual([
      'moved;1789000000000;',
      'idem2;print:1:1 +',
    ])
  })

  test('It keeps the order of several keys.', async () => {
    await send('SET', 'one', '1;a:1:2:3;')
    await send('SET', 'three', '1;b:1:2:3;', 'PX', '5000')
    const [one, two, three] = await depart('one', 'two', 'three')
    expect([one![1], two![1], three![1]]).toEqual([
      expect.stringMatching(/1;a:1:2:3;$/),
      '',
      expect.stringMatching(/1;b:1:2:3;$/),
    ])
    expect(three![0]).toBeLessThanOrEqual(5000)
    expect(one![0]).toBe(31 * 86_400_000) // it has no TTL
  })

  test('No script without a guard decides a marked record, log or slots.', async () => {
    await departed()
    await send('ZADD', 'log', '1', '1:00001')
    await depart('log')
    expect(String(await server.evaluate([key], take).catch(String))).toMatch('unknown format')
    for (const algorithm of ['log', 'slots']) {
      const args = ['3:special:', `take 1;t:${algorithm},5,60000,id,1`]
      expect(String(await server.evaluate(['log'], args).catch(String))).toMatch('WRONGTYPE')
    }
  })
})

describe('the script that stores values at the new shard', () => {
  test('It stores a record with its TTL, once.', async () => {
    const value = await departed()
    expect(await arrive(place, value)).toBe(1)
    expect(await send('GET', place)).toBe(record)
    expect(Math.abs((await ttl(place)) - value[0])).toBeLessThan(30_000)
    await send('DEL', place)
    expect(await arrive(place, value)).toBe(0)
    expect(await send('EXISTS', place)).toBe(0)
  })

  test('It stores several values in one call.', async () => {
    const mark = `moved;1789000000000;${record}`
    const reply = await arriveAll([
      ['one', [60_000, mark]],
      ['two', [60_000, mark]],
    ])
    expect([reply, await send('MGET', 'one', 'two')]).toEqual([2, [record, record]])
  })

  test('The receipt lives as long as the value.', async () => {
    const [, mark] = await departed()
    await arrive(place, [90_000, mark])
    expect(await send('GET', receiptOf(place))).toBe(mark.split(';')[1])
    expect(await ttl(receiptOf(place))).toBeGreaterThan(60_000)
    expect(await ttl(receiptOf(place))).toBeLessThanOrEqual(90_000)
  })

  test('It keeps a record that the new shard has decided, and remembers that the value is older.', async () => {
    const value = await departed()
    await send('SET', place, '1;t:1789000000000:60000:13;')
    expect(await arrive(place, value)).toBe(0)
    await send('DEL', place)
    expect(await arrive(place, value)).toBe(0)
  })

  test('It keeps a log that the new shard has decided.', async () => {
    const value = await departed('z;')
    await send('ZADD', place, '7', '7:00001')
    expect(await arrive(place, [value[0], 'moved;1789000000000;z;8:00001 8 '])).toBe(0)
    expect(await entries(place)).toEqual(['7:00001', '7'])
  })

  test.each(['record', 'log'])('A %s replaces a mark of an earlier move.', async (kind) => {
    await send('SET', place, 'moved;1788000000000;')
    const value = kind === 'record' ? record : 'z;8:00001 8 '
    expect(await arrive(place, [60_000, `moved;1789000000000;${value}`])).toBe(1)
    if (kind === 'record') expect(await send('GET', place)).toBe(record)
    else expect(await entries(place)).toEqual(['8:00001', '8'])
    expect(await ttl(place)).toBeGreaterThan(0)
  })

  test('A later move stores again, and an earlier one does not.', async () => {
    await send('SET', receiptOf(place), '1789000000005')
    expect(await arrive(place, [60_000, `moved;1789000000005;${record}`])).toBe(0)
    expect(await arrive(place, [60_000, `moved;1789000000004;${record}`])).toBe(0)
    expect(await arrive(place, [60_000, `moved;1789000000006;${record}`])).toBe(1)
  })

  test.each([1, 500, 501, 10_000])('A log of %i entries moves unchanged.', async (count) => {
    const members = Array.from({ length: count }, (_, index) => {
      const ms = 1_789_000_000_000 + (index >> 1)
      return [`${ms}`, `${ms}:${String(index % 2).padStart(5, '0')}`]
    })
    for (let start = 0; start < count; start += 1000) {
      await send('ZADD', key, ...members.slice(start, start + 1000).flat())
    }
    await send('PEXPIRE', key, '60000')
    const before = await entries(key)
    const [value] = await depart(key)
    expect(await arrive(place, value!)).toBe(1)
    expect(await entries(place)).toEqual(before)
    expect(await ttl(place)).toBeGreaterThan(30_000)
    expect(await ttl(key)).toBeGreaterThan(30_000)
  })
})

describe('the script that removes values that have arrived', () => {
  test('It leaves the mark with its TTL, and a repeated departure returns nothing.', async () => {
    const [, mark] = await departed()
    const bare = mark.slice(0, 'moved;1789000000000;'.length)
    await settle(key, bare)
    expect(await send('GET', key)).toBe(bare)
    expect(await ttl(key)).toBeGreaterThan(0)
    expect((await depart(key))[0]![1]).toBe('')
  })

  test('It settles several keys.', async () => {
    for (const one of ['one', 'two']) await send('SET', one, `moved;1789000000000;${record}`)
    await settleAll(['one', 'two'], 'moved;1789000000000;')
    expect(await send('MGET', 'one', 'two')).toEqual(Array(2).fill('moved;1789000000000;'))
  })

  test('It leaves a key that has moved back, and the mark of another time.', async () => {
    await send('SET', 'record', record)
    await send('ZADD', 'log', '7', '7:00001')
    await send('SET', 'other', 'moved;1789000000001;1;')
    for (const one of ['record', 'log', 'other']) {
      expect(await settle(one, 'moved;1789000000000;')).toBe(1)
    }
    expect(await send('MGET', 'record', 'other')).toEqual([record, 'moved;1789000000001;1;'])
    expect(await entries('log')).toEqual(['7:00001', '7'])
  })
})
