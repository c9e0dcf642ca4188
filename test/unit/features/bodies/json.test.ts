import * as fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { parseStrict, textOf, UNREADABLE, valueAt } from '../../../../src/features/bodies/json.ts'
import { anyCharacter } from '../../../support/any-text.ts'
import { isLong } from '../../../support/long.ts'

describe('parseStrict', () => {
  test.each([
    ['a duplicate key', '{"a":1,"a":2}'],
    ['a duplicate key in a nested object', '{"x":[{"y":{"a":1,"b":{},"a":2}}]}'],
    [
      'a duplicate key that is written with an escape',
      '{"method":"ping","m\\u0065thod":"tools/call"}',
    ],
    ['a duplicate __proto__', '{"__proto__":1,"__proto__":2}'],
    ['a duplicate after a text with quotes and brackets', '{"a":"\\"}],{\\\\","b":1,"a":2}'],
    ['a text before the value', 'x{}'],
    ['a byte order mark', '\ufeff{}'],
    ['no value', ' '],
    ['a trailing comma', '{"a":1,}'],
    ['a comment', '{/**/}'],
    ['NaN', '{"a":NaN}'],
  ])('%s is refused.', (_title, text) => {
    expect(() => parseStrict(text)).toThrow(SyntaxError)
  })

  test('Nesting of 64 levels is accepted, and of 65 levels and of 30,000 levels refused.', () => {
    const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
    expect(() => parseStrict(nested(64))).not.toThrow()
    expect(() => parseStrict(nested(65))).toThrow(SyntaxError)
    expect(() => parseStrict(nested(30_000))).toThrow(SyntaxError)
    expect(() => parseStrict(`${'{"a":'.repeat(30_000)}1${'}'.repeat(30_000)}`)).toThrow(
      SyntaxError,
    )
  })

  test('Equal keys of different objects are accepted.', () => {
    expect(parseStrict('[{"a":1},{"a":{"a":["a","a"]}}]')).toEqual([
      { a: 1 },
      { a: { a: ['a', 'a'] } },
    ])
  })

  test('Any JSON of up to 64 levels is parsed as JSON.parse does.', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 8 }), (text) => {
        expect(parseStrict(text)).toEqual(JSON.parse(text))
      }),
      { numRuns: isLong ? 1000 : 300 },
    )
  })

  test('A key that is added a second time to any object of any JSON is found.', () => {
    const key = fc.string({ maxLength: 5, unit: anyCharacter })
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 3 }), key, fc.jsonValue(), (value, name, inner) => {
        const pair = `${JSON.stringify(name)}:${JSON.stringify(inner)}`
        const twice = `{${pair},"-":${JSON.stringify(value)},${pair}}`
        expect(() => parseStrict(`[${JSON.stringify(value)},${twice}]`)).toThrow(SyntaxError)
      }),
      { numRuns: 100 },
    )
  })
})

/** The path lookup, written in another way. */
function reference(value: unknown, [name, ...rest]: string[]): unknown {
  if (name === undefined) return value ?? undefined
  if (value === null || typeof value !== 'object') return undefined
  if (Array.isArray(value)) {
    const found = value.find(
      (_, index) => index === (/^[0-9]+$/.test(name) ? parseInt(name, 10) : -1),
    )
    return reference(found, rest)
  }
  const entries = Object.entries(value)
  const same = entries.filter(
    ([key]) => key.localeCompare(name, 'en', { sensitivity: 'accent' }) === 0,
  )
  if (same.some(([key]) => key !== name)) return UNREADABLE
  return reference(entries.find(([key]) => key === name)?.[1], rest)
}

describe('valueAt', () => {
  test('A long text on the way of a path costs nothing: its characters are no members.', () => {
    const keys = vi.spyOn(Object, 'keys')
    expect(valueAt({ a: 'x'.repeat(65_536) }, 'a.b.c')).toBeUndefined()
    expect(keys.mock.calls).toEqual([[{ a: expect.any(String) }]])
    keys.mockRestore()
  })

  const call = { method: 'tools/call', params: { name: 'search', args: [{ q: 1 }, null] } }

  test.each([
    ['method', 'tools/call'],
    ['params.name', 'search'],
    ['params.args.0.q', 1],
    ['params.args.1', undefined],
    ['params.args.length', undefined],
    ['params.args.-1', undefined],
    ['params.name.length', undefined],
    ['params.name.0', undefined],
    ['constructor', undefined],
    ['__proto__', undefined],
    ['params.toString', undefined],
  ])('The path %s finds %j.', (path, value) => {
    expect(valueAt(call, path)).toEqual(value)
  })

  test('__proto__ is a key like any other.', () => {
    const value = parseStrict('{"__proto__":{"name":"x"}}')
    expect(valueAt(value, '__proto__.name')).toBe('x')
    expect(valueAt(value, 'name')).toBeUndefined()
  })

  test.each(['{"Method":1}', '{"method":1,"METHOD":2}', '{"params":{"Name":1},"Params":1}'])(
    'A key with another letter case in %s is unreadable, because some servers ignore the case.',
    (text) => {
      const path = text.includes('arams') ? 'params.name' : 'method'
      expect(valueAt(parseStrict(text), path)).toBe(UNREADABLE)
    },
  )

  test('The long s and the Kelvin sign are the letters s and k, as in Go.', () => {
    expect(valueAt({ 'token\u017f': 1 }, 'tokens')).toBe(UNREADABLE)
    expect(valueAt({ '\u212aey': 1 }, 'key')).toBe(UNREADABLE)
  })

  test('The lookup in any JSON equals that of a reference.', () => {
    const name = fc.constantFrom('a', 'A', 'b', '0', '1', 'length', '__proto__', 'toString')
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        fc.constantFrom(null, 0, 'x', true, ''),
        fc.array(tie('value'), { maxLength: 3 }),
        fc
          .array(fc.tuple(name, tie('value')), { maxLength: 4 })
          .map((pairs) => JSON.parse(textOfPairs(pairs))),
      ),
    }))
    fc.assert(
      fc.property(value, fc.array(name, { minLength: 1, maxLength: 4 }), (json, path) => {
        expect(valueAt(json, path.join('.'))).toEqual(reference(json, path))
      }),
      { numRuns: isLong ? 3000 : 1000 },
    )
  })
})

const textOfPairs = (pairs: [string, unknown][]) =>
  `{${pairs.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`).join()}}`

test.each([
  ['x', 'x'],
  ['', ''],
  [7, '7'],
  [1.5, '1.5'],
  [false, 'false'],
  [undefined, undefined],
  [2 ** 53, null],
  [['x'], null],
  [{}, null],
  [UNREADABLE, null],
])('The text of %j is %j.', (value, text) => {
  expect(textOf(value)).toBe(text)
})
