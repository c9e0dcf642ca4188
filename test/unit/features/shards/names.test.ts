/** The names of shards, which are checked at once. */
import { describe, expect, test } from 'vitest'
import { ConfigError } from '../../../../src/core/base/errors.ts'
import { shards } from '../../../../src/features/shards/index.ts'

/** The problems of a call, as `path: expected | got`. */
function problemsOf(names: unknown): string[] {
  try {
    shards(names as string[])
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.problems.map(({ path, expected, got }) => `${path}: ${expected} | ${got}`)
  }
  return []
}

const many = Array.from({ length: 65 }, (_, n) => `n${n}`)
const NAME = '1 to 32 lower-case letters, digits and "-"'

describe('a list of shards', () => {
  test.each<[names: unknown, problem: unknown]>([
    [undefined, 'shards: a list of names | nothing'],
    ['eu-1', 'shards: a list of names | "eu-1"'],
    [[], 'shards: at least one name | []'],
    [many, expect.stringMatching(/^shards: at most 64 names \| \["n0",/)],
    [['a', 'b', 'a'], 'shards[2]: a name that no other shard has | "a"'],
    ...['EU-1', 'eu_1', '', 'a'.repeat(33), 1].map((name): [unknown, string] => [
      ['a', name],
      `shards[1]: ${NAME} | ${JSON.stringify(name)}`,
    ]),
  ])('shards(%j) is refused.', (names, problem) => {
    expect(problemsOf(names)).toEqual([problem])
  })

  test.each([[['eu-1']], [['eu-1', 'eu-2']], [many.slice(0, 64)]])(
    'shards(%j) is accepted.',
    (names) => {
      expect(shards(names)).toMatchObject({ databases: names })
    },
  )
})

test('The problems of all names are reported together.', () => {
  expect(problemsOf(['A', 'b', 'C'])).toEqual([
    `shards[0]: ${NAME} | "A"`,
    `shards[2]: ${NAME} | "C"`,
  ])
})
