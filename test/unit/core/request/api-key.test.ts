import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { beforeEach, describe, expect, test } from 'vitest'
import { UNREADABLE } from '../../../../src/core/base/part.ts'
import { parseConfig } from '../../../../src/core/config/parse.ts'
import { createApiKey } from '../../../../src/core/request/api-key.ts'
import { UNVERIFIED } from '../../../../src/core/request/source.ts'
import { seenWith } from '../../../support/issuer.ts'

const digest = (key: string) => createHash('sha256').update(key).digest('hex')

let lines: string[]
const log = (event: string, code: string, message: string) =>
  void lines.push(`${event} ${code}: ${message}`)
beforeEach(() => {
  lines = []
})

const reader = (apiKeys: object = {}) =>
  createApiKey(parseConfig({ policies: [], apiKeys }).apiKeys, log)
const x = (key: string) => ({ 'X-Api-Key': key })

describe('API keys without a list of known keys', () => {
  test.each([
    [{}, undefined],
    [x('abc'), 'abc'],
    [{ Authorization: 'Bearer abc' }, 'abc'],
    [{ ...x('abc'), Authorization: 'Bearer def' }, 'abc'],
    [x('abc, def'), UNREADABLE], // two fields
    [x('abc,def'), UNREADABLE],
    [{ ...x('abc, abd'), Authorization: 'Bearer def' }, UNREADABLE],
    [{ Authorization: 'Bearer abc, Bearer def' }, UNREADABLE],
    [{ Authorization: 'Bearer a.b.c' }, 'a.b.c'],
    [{ Authorization: 'Basic YTpi' }, undefined],
    [x('k'.repeat(100_000)), 'k'.repeat(100_000)],
  ])('The headers %j have the API key %j.', async (headers: Record<string, string>, key) => {
    expect(await reader()(seenWith(headers))).toBe(typeof key === 'string' ? digest(key) : key)
    expect(lines).toEqual([])
  })

  test('The key of a request is hashed once for all policies.', async () => {
    const read = reader()
    const seen = seenWith(x('abc'))
    expect(read(seen.with({}))).toBe(read(seen))
  })

  test('The key is read from the configured sources.', async () => {
    const read = reader({ from: ['query:key', 'cookie:key'] })
    expect(await read(seenWith({ ...x('a'), Cookie: 'key=c' }, { query: '?key=q' }))).toBe(
      digest('q'),
    )
    expect(await read(seenWith({ ...x('a'), Cookie: 'key=c' }))).toBe(digest('c'))
    expect(await read(seenWith(x('a')))).toBe(undefined)
  })
})

describe('API keys with a list of known keys', () => {
  const read = (key: string, KEYS: unknown, readKey = reader({ known: 'KEYS' })) =>
    readKey(seenWith(x(key), { env: { KEYS } }))

  test.each([
    ['one', digest('one')],
    ['one', `${digest('two')} ${digest('one')}`],
    ['one', `${digest('two')},${digest('one')}\n`],
    ['one', digest('one').toUpperCase()],
  ])('The key %j is known from the list %j.', async (key, listed) => {
    expect(await read(key, listed)).toBe(digest(key))
    expect(lines).toEqual([])
  })

  test.each([
    ['three', `${digest('one')} ${digest('two')}`],
    ['One', digest('one')],
    [digest('one'), digest('one')],
    ['a.b.c', digest('one')],
  ])('The key %j is not known from the list %j.', async (key, listed) => {
    expect(await read(key, listed)).toBe(UNVERIFIED)
    expect(lines).toEqual([])
  })

  test('An empty key is missing.', async () => {
    expect(await read('', digest(''))).toBe(undefined)
  })

  test.each([
    // sources, headers, result
    [['bearer'], { Authorization: 'Bearer one' }, digest('one')],
    [['bearer'], { Authorization: 'Bearer a.b.c' }, digest('a.b.c')],
    [['bearer'], { Authorization: 'Bearer two' }, UNVERIFIED],
    [['bearer'], { Authorization: 'Bearer x.y.z' }, undefined],
    [['header:x-api-key', 'bearer'], { Authorization: 'Bearer x.y.z' }, undefined],
    [['bearer', 'cookie:k'], { Authorization: 'Bearer x.y.z', Cookie: 'k=one' }, UNVERIFIED],
    [['header:x-api-key'], x('x.y.z'), UNVERIFIED],
    [['query:key'], {}, undefined],
  ])('With the sources %j, the headers %j have the result %j.', async (from, headers, expected) => {
    const env = { KEYS: `${digest('one')} ${digest('a.b.c')}` }
    const readKey = reader({ known: 'KEYS', from })
    expect(await readKey(seenWith(headers as Record<string, string>, { env }))).toBe(expected)
  })

  test.each([
    ['is not set', undefined],
    ['is blank', ' '],
    ['is a number', 7],
  ])('If the variable %s, every key is unverified and an event is logged.', async (_, listed) => {
    expect(await read('one', listed)).toBe(UNVERIFIED)
    expect(lines).toEqual([
      'api-keys missing: the variable named by apiKeys.known is not set: every key is unverified',
    ])
  })

  test('An entry that is not a digest verifies no key, is logged without its text, and does not affect other entries.', async () => {
    const listed = `my-secret-key ${digest('one')} ${digest('two').slice(1)}`
    const readKey = reader({ known: 'KEYS' })
    expect(await read('my-secret-key', listed, readKey)).toBe(UNVERIFIED)
    expect(await read('one', listed, readKey)).toBe(digest('one'))
    expect(lines).toEqual([
      'api-keys not-a-digest: entries of the variable named by apiKeys.known that are not a SHA-256 in hex: 2',
    ])
  })

  test('A new value of the variable takes effect at once.', async () => {
    const readKey = reader({ known: 'KEYS' })
    expect(await read('one', digest('one'), readKey)).toBe(digest('one'))
    expect(await read('one', digest('two'), readKey)).toBe(UNVERIFIED)
    expect(await read('two', digest('two'), readKey)).toBe(digest('two'))
  })

  test.each(['__proto__', 'constructor', 'toString'])(
    'A variable named %s contains no known keys.',
    async (known) => {
      const { apiKeys } = parseConfig({ policies: [], apiKeys: { known: 'KEYS' } })
      const read = createApiKey({ ...apiKeys, known }, log) // the parser refuses such a name
      expect(await read(seenWith(x('one')))).toBe(UNVERIFIED)
    },
  )

  test('A key is known if and only if its digest is listed.', async () => {
    const key = fc.stringMatching(/^[!-+.-~]{1,20}$/)
    await fc.assert(
      fc.asyncProperty(fc.array(key, { maxLength: 5 }), key, async (keys, other) => {
        const listed = keys.map(digest).join(' ') || digest('none of them')
        const readKey = reader({ known: 'KEYS' })
        for (const known of keys) expect(await read(known, listed, readKey)).toBe(digest(known))
        if (!keys.includes(other)) expect(await read(other, listed, readKey)).toBe(UNVERIFIED)
      }),
    )
  })
})
