/** What the script checks by itself: the version of the arguments, and the keys. test/unit/core/connection/arguments.test.ts has the other checks. */
import { expect, test } from 'vitest'
import type { ModelRequest } from '../model/model.ts'
import { ask, rowOf, start } from '../support/ask.ts'
import { useServer } from '../support/server.ts'
import { newSubject } from '../support/subjects.ts'

const server = useServer()
const now = `${start}`
const limit = '1;t:fixed,10,1000,clock,1'
const newKey = () => `sluice:1:{${newSubject()}}`

/** Sends arguments, checks that no key was written, and returns the error message. */
async function refusal(keys: string[], args: string[]): Promise<string> {
  const answer = await server.evaluate(keys, args).then(String, (error) => String(error.message))
  if (keys.length > 0) expect(await server.send('EXISTS', ...keys)).toBe(0)
  return answer
}

test('A valid call is accepted.', async () => {
  expect(await server.evaluate([newKey()], [`3::${now}`, `take ${limit}`])).toBe(
    '1789000000000:3 +1789000000000:1000:1;',
  )
})

test.each([
  ['no arguments', []],
  ['an empty header', ['']],
  ['version 2', ['2::']],
  ['version 33', ['33::']],
  ['no version', [`::${now}`]],
  ['a header without an end', ['3:']],
  ['a fraction as the time', ['3::1.5']],
  ['a negative time', ['3::-1']],
  ['text after the time', ['3::1x']],
  [
    'the arguments of version 1',
    [now, '1', 'take', '1', 't', 'fixed-window', '10', '1000', '10', '1', 'clock', ''],
  ],
  [
    'those of version 1 without a time',
    ['', '1', 'take', '1', 't', 'fixed-window', '10', '1000', '10', '1', 'clock', ''],
  ],
])(
  'A call with %s fails with an error that names the version, and writes nothing.',
  async (_, [header, ...rest]) => {
    const args = [...(header === undefined ? [] : [header]), ...rest, `take ${limit}`]
    const error = 'ERR sluice: ARGV: this script needs arguments of version 3'
    expect(await refusal([newKey()], header === undefined ? [] : args)).toBe(error)
  },
)

test('The longest penalty and the largest cost beside it are exact.', async () => {
  const most = 2 ** 51
  const penalty = { after: 1, withinMs: most, banMs: most, maxMs: most }
  const state = await ask(server, 'take', rowOf({ limit: 1, windowMs: 1, penalty }, most), 2 ** 50)
  expect(state).toMatchObject({ allowed: false, bannedForMs: most })
})

test('The server formats whole numbers below 2^53 exactly with %d.', async () => {
  const numbers = [0, 1, 2 ** 31, 2 ** 32 + 1, 1_789_000_000_000, 2 ** 51, 2 ** 53 - 1]
  const script = "return string.format('%d', tonumber(ARGV[1]))"
  for (const number of numbers) {
    expect(await server.send('EVAL', script, '0', `${number}`)).toBe(`${number}`)
  }
})

test('A call may have 128 keys and 128 requests, and one tag for several of them.', async () => {
  const requests = Array.from({ length: 128 }, (): ModelRequest => {
    return { mode: 'take', limits: [rowOf({ limit: 1 })] }
  })
  const once = { key: newSubject(), fingerprint: 'f', forMs: 1000 }
  const { states } = await server.decide(requests, start, once)
  expect(states.flat().filter(({ allowed }) => allowed)).toHaveLength(128)
})

test.each(['2;t:1:1:1;', 'x', ''])(
  'A record of an unknown format is refused and keeps its value: %j.',
  async (text) => {
    const key = newKey()
    await server.send('SET', key, text)
    const args = [`3::${now}`, 'take 2;t:fixed,10,1000,,1']
    const answer = await server.evaluate([newKey(), key], args).then(String, String)
    expect(answer).toContain('ERR sluice: key 2 holds a record of an unknown format')
    expect(await server.send('GET', key)).toBe(text)
  },
)

test.each(['log', 'slots'])(
  'A key of %s of another type fails before an earlier request is charged.',
  async (algorithm) => {
    const record = newKey()
    const [own, other] = [`${newKey()}:${algorithm}:t`, `${newKey()}:${algorithm}:t`]
    await server.send('SET', other, 'text')
    const args = [
      `3:special:${now}`,
      `take ${limit} 2;t:${algorithm},10,1000,id,1`,
      `take 3;t:${algorithm},10,1000,id,1`,
    ]
    await expect(server.evaluate([record, own, other], args)).rejects.toThrow(/^WRONGTYPE/)
    expect(await server.send('EXISTS', record, own)).toBe(0)
  },
)
