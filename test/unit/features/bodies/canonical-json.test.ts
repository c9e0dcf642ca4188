/** Canonical JSON, with the examples of RFC 8785. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { canonicalJson } from '../../../../src/features/bodies/json.ts'
import { property } from '../../../support/law.ts'

const canonical = (text: string) => canonicalJson(JSON.parse(text))

test('The example of RFC 8785, 3.2.2, has the text of 3.2.4.', () => {
  const text = `{
    "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
    "string": "\\u20ac$\\u000F\\u000aA'\\u0042\\u0022\\u005c\\\\\\"\\/",
    "literals": [null, true, false]
  }`
  expect(canonical(text)).toBe(
    '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
  )
})

test('Members have the order of RFC 8785, 3.2.3: by UTF-16 code units.', () => {
  const text = `{"\\u20ac":"Euro Sign","\\r":"Carriage Return","\\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One",
    "\\ud83d\\ude00":"Emoji: Grinning Face","\\u0080":"Control","\\u00f6":"Latin Small Letter O With Diaeresis"}`
  const order = [...canonical(text)!.matchAll(/:"([^"]+)"/g)].map(([, name]) => name)
  expect(order).toEqual([
    'Carriage Return',
    'One',
    'Control',
    'Latin Small Letter O With Diaeresis',
    'Euro Sign',
    'Emoji: Grinning Face',
    'Hebrew Letter Dalet With Dagesh',
  ])
})

// RFC 8785, Appendix B.
test.each([
  ['-0', '0'],
  ['5e-324', '5e-324'],
  ['1.7976931348623157e308', '1.7976931348623157e+308'],
  ['9007199254740992', '9007199254740992'],
  ['295147905179352830000', '295147905179352830000'],
  ['9.999999999999997e22', '9.999999999999997e+22'],
  ['1e23', '1e+23'],
  ['999999999999999900000', '999999999999999900000'],
  ['1e21', '1e+21'],
  ['9.999999999999997e-7', '9.999999999999997e-7'],
  ['0.000001', '0.000001'],
  ['333333333.33333325', '333333333.33333325'],
  ['1424953923781206.25', '1424953923781206.2'],
])('The number %s is written as %s.', (number, text) => {
  expect(canonical(number)).toBe(text)
})

test.each(['"\\ud800"', '["a", "\\udfff"]', '{"\\ud83d": 1}', '1e400', '{"a": [-1e999]}'])(
  '%s has no canonical form.',
  (text) => {
    expect(canonical(text)).toBeUndefined()
  },
)

test('A text that looks like half a surrogate pair has a canonical form, and so has a member __proto__.', () => {
  expect(canonical('"\\\\ud800"')).toBe('"\\\\ud800"')
  expect(canonical('{"b":1,"__proto__":{"a":2}}')).toBe('{"__proto__":{"a":2},"b":1}')
})

/** The same value with its members in the opposite order. */
const reversed = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(reversed)
  if (Object(value) !== value) return value
  const members = Object.entries(value as object).map(([name, one]) => [name, reversed(one)])
  return Object.fromEntries(members.reverse())
}

const json = fc.jsonValue()

property(
  'The canonical form has the same value, and is its own canonical form.',
  json,
  async (value) => {
    const text = canonicalJson(value)!
    expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)))
    expect(canonical(text)).toBe(text)
  },
)

property('The order of members and white space change nothing.', json, async (value) => {
  expect(canonical(JSON.stringify(reversed(value), null, 2))).toBe(canonicalJson(value))
})

// A body parser of an app may return more than JSON has.
test.each([1n, { a: [1n] }, undefined, { a: undefined }, Symbol('a'), () => 1])(
  'The value %o, which JSON does not have, has no canonical form.',
  (value) => {
    expect(canonicalJson(value)).toBeUndefined()
  },
)

// A body parser of an app sets no bound on levels, as `JSON.parse` does not.
test('A value that is nested too deep has no canonical form.', () => {
  const lists = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)
  const objects = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`
  for (const nested of [lists, objects]) {
    expect(canonical(nested(64))).toBe(nested(64))
    expect(canonical(nested(66))).toBeUndefined()
    expect(canonical(nested(100_000))).toBeUndefined()
  }
})
