import { createHash } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Bridge, startBridge } from '../src/index.ts'
import { slotOf } from '../src/slot.ts'
import { type Admin, startAdmin } from './cluster-admin.ts'
import { CROSSSLOT } from './stack.ts'

const COUNT = `#!lua flags=allow-key-locking\nreturn redis.call('INCR', KEYS[1])`
const sha1 = (text: string) => createHash('sha1').update(text).digest('hex')

let cluster: Admin
let bridge: Bridge
/** A bridge that runs scripts unchanged. */
let bare: Bridge
beforeAll(async () => {
  cluster = await startAdmin(5000)
  bridge = await startBridge({ cluster: cluster.urls.slice(0, 1) })
  bare = await startBridge({ cluster: cluster.urls.slice(5), checkKeys: false })
})
beforeEach(async () => {
  await command('flushall')
  await command('script', 'flush')
  for (const node of [0, 1, 2]) await cluster.ask(node, 'CONFIG', 'RESETSTAT')
})
afterAll(async () => {
  await bridge?.close()
  await bare?.close()
  await cluster?.stop()
})

async function post(path: string, body: unknown, to = bridge) {
  const headers = { authorization: 'Bearer dev' }
  const init = { method: 'POST', headers, body: JSON.stringify(body) }
  const response = await fetch(to.url + path, init)
  return { status: response.status, json: (await response.json()) as Record<string, unknown> }
}
const command = async (...body: unknown[]) => (await post('/', body)).json
const calls = async (node: number, name: string) =>
  Number(
    new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(
      await cluster.info(node, 'commandstats'),
    )?.[1] ?? 0,
  )

const one = [0, 1, 2].map((master) => cluster0(master))
function cluster0(master: number) {
  for (let n = 0; ; n++) if (Math.floor((slotOf(`k${n}`) * 3) / 16_384) === master) return `k${n}`
}

describe('routing', () => {
  test('Each command goes to the node that owns its slot, without a redirection.', async () => {
    for (const [master, key] of one.entries()) {
      await command('set', key, master)
      expect(await cluster.ask(master, 'GET', key)).toBe(`${master}`)
    }
    const errors = await Promise.all([0, 1, 2].map((node) => cluster.info(node, 'errorstats')))
    expect(errors.join()).not.toContain('MOVED')
  })

  test('A pipeline is split by slot and answered in order.', async () => {
    const keys = [0, 1, 2].flatMap((master) => cluster.keysOf(master, 100))
    const shuffled = keys.toSorted((a, b) => (sha1(a) < sha1(b) ? -1 : 1))
    const body = shuffled.flatMap((key) => [
      ['set', key, key],
      ['incr', key],
      ['get', key],
    ])
    const { json } = await post('/pipeline', body)
    expect(json).toEqual(
      shuffled.flatMap((key) => [
        { result: 'OK' },
        { error: 'ERR value is not an integer or out of range' },
        { result: key },
      ]),
    )
  })

  test.each([
    ['a command', '/', ['mget', ...one]],
    ['a script', '/', ['eval', COUNT, 2, one[0], one[1]]],
    [
      'a transaction',
      '/multi-exec',
      [
        ['set', one[0], 1],
        ['set', one[1], 1],
      ],
    ],
    ['slots of one node', '/multi-exec', cluster1().map((key) => ['set', key, 1])],
  ])('Keys in several slots are refused: %s.', async (_, path, body) => {
    expect(await post(path, body)).toEqual({ status: 400, json: { error: CROSSSLOT } })
    expect(await command('dbsize')).toEqual({ result: 0 })
  })
  function cluster1() {
    return ['k0', 'k1', 'k2', 'k3', 'k4', 'k5'].filter((key) => slotOf(key) < 5461).slice(0, 2)
  }

  test('DBSIZE, KEYS, SCAN, RANDOMKEY and FLUSHALL cover all nodes.', async () => {
    const keys = [0, 1, 2].flatMap((master) => cluster.keysOf(master, 30)).sort()
    await post(
      '/pipeline',
      keys.map((key) => ['set', key, 1]),
    )
    expect(await command('dbsize')).toEqual({ result: 90 })
    expect(((await command('keys', '*')).result as string[]).sort()).toEqual(keys)
    const found: string[] = []
    let cursor = '0'
    do {
      const { result } = await command('scan', cursor, 'COUNT', 7)
      const [next, some] = result as [string, string[]]
      found.push(...some)
      cursor = next
    } while (cursor !== '0')
    expect(found.sort()).toEqual(keys)
    expect(keys).toContain((await command('randomkey')).result)
    await command('flushall')
    expect(await command('dbsize')).toEqual({ result: 0 })
    expect(await command('scan', 'x')).toEqual({ error: 'ERR invalid cursor' })
  })

  test('A replica as the only given node is enough to find the masters.', async () => {
    expect((await post('/', ['set', one[1], 'x'], bare)).json).toEqual({ result: 'OK' })
  })
})

describe('EVALSHA on a node that lacks the script', () => {
  const key = one[2]!

  test('The script is loaded there once, and each call runs once.', async () => {
    await command('eval', COUNT, 1, one[0])
    expect(await calls(2, 'script\\|load')).toBe(0)
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => command('evalsha', sha1(COUNT), 1, key)),
    )
    const results = answers.map(({ result }) => Number(result)).sort((a, b) => a - b)
    expect(results).toEqual(Array.from({ length: 50 }, (_, index) => index + 1))
    expect(await calls(2, 'script\\|load')).toBe(1)
  })

  test('A transaction and a pipeline find it, too.', async () => {
    await command('eval', COUNT, 1, one[0])
    const body = [['evalsha', sha1(COUNT), 1, key]]
    expect((await post('/multi-exec', body)).json).toEqual([{ result: 1 }])
    await cluster.ask(2, 'SCRIPT', 'FLUSH')
    expect((await post('/pipeline', body)).json).toEqual([{ result: 2 }])
  })

  test('Commands after it in a pipeline run after it.', async () => {
    await command('eval', COUNT, 1, one[0])
    await cluster.ask(2, 'SCRIPT', 'FLUSH')
    const other = await startBridge({ cluster: cluster.urls })
    try {
      await post('/', ['eval', COUNT, 1, one[1]], other)
      const body = [
        ['evalsha', sha1(COUNT), 1, key],
        ['get', key],
        ['evalsha', sha1(COUNT), 1, key],
      ]
      const { json } = await post('/pipeline', body, other)
      expect(json).toEqual([{ result: 1 }, { result: '1' }, { result: 2 }])
    } finally {
      await other.close()
    }
  })

  test('A script that no client has sent is NOSCRIPT.', async () => {
    const { error } = await command('evalsha', sha1('return 1234'), 1, key)
    expect(error).toBe('NOSCRIPT No matching script. Please use EVAL.')
  })
})

describe('a script that may have run', () => {
  const key = one[1]!
  const lies = ['MOVED', 'ASK'].map((word) => `${word} ${slotOf(key)} 127.0.0.1:1`)

  const errors = [...lies, 'TRYAGAIN x', 'CLUSTERDOWN x', 'NOSCRIPT x']
  test.each([
    ...errors.map((error) => ['returns', `return redis.error_reply('${error}')`]),
    ...errors.map((error) => ['raises', `error({ err = '${error}' })`]),
  ])('A script that %s an error of the cluster itself runs once: %s.', async (_, ending) => {
    for (const [index, to] of [bridge, bare].entries()) {
      const text = `redis.call('INCR', KEYS[1]) ${ending} -- ${index}`
      for (const call of [
        ['eval', text],
        ['evalsha', sha1(text)],
      ]) {
        await post('/', ['del', key], to)
        const { status } = await post('/', [...call, 1, key], to)
        expect(status).toBeGreaterThan(199)
        expect([index, call[0], (await post('/', ['get', key], to)).json]).toEqual([
          index,
          call[0],
          { result: '1' },
        ])
      }
    }
  })
})

describe('a slot that moves', () => {
  const key = one[0]!
  const slot = slotOf(key)

  test('Commands, scripts and transactions follow ASK, TRYAGAIN and MOVED.', async () => {
    const other = `other{${key}}`
    await command('set', key, 0)
    await command('eval', COUNT, 1, key)
    await cluster.beginMove(slot, 0, 1)
    // `key` is at the source, and `other` does not exist: the source answers ASK for it.
    expect(await command('incr', key)).toEqual({ result: 2 })
    expect(await command('incr', other)).toEqual({ result: 1 })
    expect(await command('evalsha', sha1(COUNT), 1, other)).toEqual({ result: 2 })
    expect((await post('/', ['eval', `${COUNT} --`, 1, other], bare)).json).toEqual({ result: 3 })
    const increments = new Array(2).fill(['incr', other])
    expect((await post('/multi-exec', increments)).json).toEqual([{ result: 4 }, { result: 5 }])
    // The keys are on two nodes now: TRYAGAIN until they are together.
    const both = command('mget', key, other)
    await cluster.moveKeys(slot, 0, 1, 10)
    expect(await both).toEqual({ result: ['2', '5'] })
    await cluster.endMove(slot, 1)
    // The bridge finds out by this pipeline. Its commands run in their order.
    const answers = await post('/pipeline', [
      ['evalsha', sha1(COUNT), 1, key],
      ['get', key],
      ['set', key, 3],
      ['evalsha', sha1(COUNT), 1, other],
      ['get', other],
    ])
    const results = [3, '3', 'OK', 6, '6']
    expect(answers.json).toEqual(results.map((result) => ({ result })))
    expect((await post('/multi-exec', increments)).json).toEqual([{ result: 7 }, { result: 8 }])
    expect(await cluster.ask(1, 'GET', key)).toBe('3')
  })
})
