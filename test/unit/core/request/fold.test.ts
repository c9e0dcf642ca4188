import fc from 'fast-check'
import { expect, test } from 'vitest'
import { folded, trimmed } from '../../../../src/core/request/fold.ts'

test.each([
  ['ann', ['Ann', 'ANN', ' ann', 'ann\t\n', '\u00a0ann\u3000', 'ann\0']],
  ['ann', ['Ａｎｎ', 'ⓐnn', 'áñn', 'a\u0301nn', 'a\u200bnn', 'an\u00adn', '\ufeffann']],
  ['ssmith', ['ßmith', 'ẞmith', 'ſsmith', 'SSMITH']],
  ['kelvin', ['\u212aelvin']],
  ['fi@a.example', ['\ufb01@a.example', 'fi@a\uff0eexample']],
  ['жук', ['ЖУК']],
])('The name %s is folded from %j.', (name, spellings) => {
  expect(spellings.map(folded)).toEqual(spellings.map(() => name))
})

test('White space around a value that would vanish makes no other value.', () => {
  // Its compatibility form is a space and an accent.
  for (const value of ['\ufe49', '\u200b', '\u0301']) {
    expect([` ${value}`, `${value}\t`, `\u00a0${value}\n`].map(folded)).toEqual([
      value,
      value,
      value,
    ])
  }
})

test.each([' ', '\u200b', '\u0301', '\0'])('A value that would vanish, %j, is kept.', (value) => {
  expect(folded(value)).toBe(value)
})

test('Folding twice changes nothing more, and white space at the ends changes nothing.', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (text) => {
      const once = folded(text)
      expect(folded(once)).toBe(once)
      if (trimmed(text) !== '') expect(folded(`\t ${text}\u00a0\n`)).toBe(once)
    }),
    { numRuns: 1000 },
  )
})

test('Names of ASCII that differ in more than letter case and their ends stay different.', () => {
  const name = fc.stringMatching(/^[!-~]{1,20}$/)
  fc.assert(
    fc.property(name, name, (one, other) => {
      expect(folded(one) === folded(other)).toBe(one.toLowerCase() === other.toLowerCase())
    }),
  )
})
