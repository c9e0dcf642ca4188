/** decideEach with failed answers of the server: the error that each list gets. */
import { describe, expect, test } from 'vitest'
import { StoreError } from '../../../../src/core/base/errors.ts'
import { ask, outcomes, two, useBridge } from '../../../support/many-lists.ts'

const { answering, newStore } = useBridge()

const good = { result: `1 ${'+1:1000:93;'.repeat(100)}` }
const sevens = Array(100).fill(7)
const inOneCall = () => [[ask('take', ['x'])], [ask('take', ['y'])]]

describe('a failed answer to many lists', () => {
  test.each<[claim: string, answer: unknown, codes: unknown[]]>([
    [
      'an error in the first answer',
      [{ error: 'WRONGTYPE planted' }, good],
      ['redis-error', sevens],
    ],
    ['an error in the second answer', [good, { error: 'ERR planted' }], [sevens, 'redis-error']],
    ['an error without a text', [good, { error: '' }], [sevens, 'redis-error']],
    [
      'an error about the plan',
      [good, { error: 'ERR max daily request limit exceeded' }],
      [sevens, 'over-quota'],
    ],
    ['another text', [good, { result: 'OK' }], [sevens, 'bad-reply']],
    ['a list instead of a text', [good, { result: [good.result] }], [sevens, 'bad-reply']],
    ['a number instead of a text', [good, { result: 1 }], [sevens, 'bad-reply']],
    ['too few states', [good, { result: '1 +;' }], [sevens, 'bad-reply']],
    ['null as an answer', [null, good], ['bad-reply', sevens]],
    ['a number as an answer', [7, good], ['bad-reply', sevens]],
    ['one answer too few', [good], ['bad-reply', 'bad-reply']],
    ['one answer too many', [good, good, good], ['bad-reply', 'bad-reply']],
    [
      'one error for the whole request',
      { error: 'WRONGPASS planted' },
      ['unauthorized', 'unauthorized'],
    ],
    ['a single result', { result: good.result }, ['bad-reply', 'bad-reply']],
    ['a null body', 'null', ['bad-reply', 'bad-reply']],
    ['an HTML page', '<html>planted</html>', ['bad-reply', 'bad-reply']],
  ])('Each list gets its own result if the server sends %s.', async (_, answer, codes) => {
    using server = await answering(() => answer)
    const replies = await newStore({ url: server.url }).decideEach(two(), {})
    expect(outcomes(replies)).toEqual(codes)
    expect(server.requests()).toBe(1)
    for (const error of replies) {
      if (!(error instanceof StoreError)) continue
      const printed = `${error.stack} ${JSON.stringify(error)} ${String(error.cause)}`
      expect(printed).not.toMatch(/planted|the-right-token|allow-key-locking|sluice:1/)
    }
  })

  test.each([400, 500, 307])(
    'The status %d fails all lists, whatever the body is.',
    async (status) => {
      using server = await answering(() => [good, good], { status })
      for (const lists of [two(), inOneCall()]) {
        const replies = await newStore({ url: server.url }).decideEach(lists, {})
        expect(outcomes(replies)).toEqual(['redis-error', 'redis-error'])
      }
      expect(server.requests()).toBe(2)
    },
  )

  test.each([
    [{ token: 'a-wrong-token' }, 'unauthorized'],
    [{ url: 'http://127.0.0.1:1' }, 'unreachable'],
    [{ url: undefined }, 'not-configured'],
  ])('With the options %j each list gets the error %s.', async (options, code) => {
    expect(outcomes(await newStore(options).decideEach(two(), {}))).toEqual([code, code])
    expect(outcomes(await newStore(options).decideEach(inOneCall(), {}))).toEqual([code, code])
  })

  test('A slow server is a timeout of each list, with one deadline for all HTTP requests.', async () => {
    using server = await answering(
      (commands) => commands.map(() => ({ error: 'NOSCRIPT No matching script.' })),
      { delayMs: 600 },
    )
    const start = performance.now()
    const replies = await newStore({ url: server.url, deadlineMs: 1_000 }).decideEach(two(), {})
    expect(outcomes(replies)).toEqual(['timeout', 'timeout'])
    expect(performance.now() - start).toBeLessThan(5_000)
    expect(server.requests()).toBe(2)
  })

  test('Only calls that found no script are sent again, as long as the first of them, with the script, runs.', async () => {
    const seen: string[][] = []
    const noScript = { error: 'NOSCRIPT No matching script.' }
    // As from three nodes of a cluster without the script. The last one stays without it.
    const answers = [
      [good, noScript, noScript, noScript],
      [good, noScript, noScript],
      [noScript, noScript],
    ]
    using server = await answering((commands, number) => {
      seen.push(commands.map(([name]) => name!))
      return answers[number]
    })
    const lists = [...two(), ...two()]
    const replies = await newStore({ url: server.url }).decideEach(lists, {})
    expect(outcomes(replies)).toEqual([sevens, sevens, 'redis-error', 'redis-error'])
    expect(seen).toEqual([
      ['eval', 'evalsha', 'evalsha', 'evalsha'],
      ['eval', 'evalsha', 'evalsha'],
      ['eval', 'evalsha'],
    ])
  })
})
