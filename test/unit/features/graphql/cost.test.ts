import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type GraphqlCostOptions, graphqlCost } from '../../../../src/features/graphql/graphql.ts'

const cost = (query: unknown, options?: GraphqlCostOptions, variables?: unknown) =>
  graphqlCost(options)({ query, variables })

describe('graphqlCost', () => {
  test.each([
    ['{ a }', 1],
    ['{ a { b c } d }', 4],
    ['{ x: a y: a z: a }', 3],
    ['query A { a } query B { a b c } mutation C { d }', 3],
    ['{ ... on T { a b } ... { c } }', 3],
    ['{ a { ...F } b { ...F } } fragment F on T { x y { z } }', 8],
    ['{ ...A } fragment A on T { ...B ...B } fragment B on T { x }', 2],
    ['{ a @skip(if: true) b @include(if: $no) }', 2],
    ['{ __typename }', 1],
    ['subscription { a { b } }', 2],
  ])('%s costs %i units.', (query, units) => {
    expect(cost(query)).toBe(units)
  })

  test.each([
    ['a persisted query', undefined],
    ['a document that is not text', ['{ a }']],
    ['an empty document', ''],
    ['a syntax error', '{ a'],
    ['no operation', 'fragment F on T { a }'],
    ['a fragment that contains itself', '{ ...F } fragment F on T { a ...F }'],
    [
      'fragments that contain each other',
      '{ ...F } fragment F on T { ...G } fragment G on T { a { ...F } }',
    ],
    ['a missing fragment', '{ ...F }'],
    ['two fragments of one name', '{ ...F } fragment F on T { a } fragment F on T { a b }'],
    ['16 levels', `${'{ a '.repeat(16)}${'}'.repeat(16)}`],
    [
      '16 levels through fragments',
      `{ ...F0 } ${Array.from({ length: 15 }, (_, n) => `fragment F${n} on T { a { ...F${n + 1} } }`).join(' ')} fragment F15 on T { a }`,
    ],
    ['1001 fields', `{ ${'a '.repeat(1001)} }`],
    ['more than 10,000 tokens', `{ ${'... { a } '.repeat(4000)} }`],
    ['nesting that is too deep for a parser', `${'{ a '.repeat(30_000)}${'}'.repeat(30_000)}`],
    [
      'inline fragments that are nested deeply',
      `{ ${'... { '.repeat(3000)} a ${'}'.repeat(3000)} }`,
    ],
  ])('%s has no cost.', (title, query) => {
    // The nesting of fragments alone adds no depth: it is refused only if it does not fit.
    if (title.startsWith('inline')) expect([1, undefined]).toContain(cost(query))
    else expect(cost(query)).toBeUndefined()
  })

  test('A document of 1000 fields or of 15 levels has a cost.', () => {
    expect(cost(`{ ${'a '.repeat(1000)} }`)).toBe(1000)
    expect(cost(`${'{ a '.repeat(15)}${'}'.repeat(15)}`)).toBe(15)
  })

  test('Fragments that double each other 1,000 times are computed at once.', () => {
    const doubling = Array.from(
      { length: 1000 },
      (_, n) => `fragment F${n} on T { ...F${n + 1} ...F${n + 1} }`,
    )
    const startedAt = performance.now()
    expect(cost(`{ ...F0 } ${doubling.join(' ')} fragment F1000 on T { a }`)).toBeUndefined()
    expect(performance.now() - startedAt).toBeLessThan(2_000)
  })

  test('A field costs depthFactor times as much as its parent.', () => {
    expect(cost('{ a { b { c } } }', { depthFactor: 3 })).toBe(1 + 3 + 9)
    expect(cost('{ a { ...F } } fragment F on T { b { c } }', { depthFactor: 3 })).toBe(13)
    expect(cost('{ a { b } }', { field: 5 })).toBe(10)
  })

  test('The fields below a list cost its size times as much.', () => {
    expect(cost('{ a(first: 10) { b { c } } }')).toBe(1 + 10 * 2)
    expect(cost('{ a(first: 10) { b(last: 5) { c d } } }')).toBe(1 + 10 * (1 + 5 * 2))
    expect(cost('{ a(take: 10) { b } }')).toBe(2)
    expect(cost('{ a(take: 10) { b } }', { lists: 'take' })).toBe(11)
    expect(cost('{ a(first: 0) { b } }')).toBe(2)
  })

  test('The size of a list may be a variable. An unusable one counts as listSize.', () => {
    const query = 'query($n: Int) { a(first: $n) { b } }'
    expect(cost(query, {}, { n: 7 })).toBe(8)
    expect(cost(query, {}, '{"n":7}')).toBe(8)
    for (const variables of [undefined, null, {}, { n: null }, { n: '7' }, { n: -7 }, [7]]) {
      expect(cost(query, { listSize: 50 }, variables)).toBe(51)
    }
    expect(cost(query, {}, '{')).toBeUndefined()
    expect(cost('query($n: Int = 30) { a(first: $n) { b } }')).toBe(31)
    expect(cost('query($n: Int = 30) { a(first: $n) { b } }', {}, { n: 2 })).toBe(3)
    expect(cost('query($n: Int = 30) { a(first: $n) { b } }', {}, { n: null })).toBe(101)
    expect(cost('query($n: Int = -1) { a(first: $n) { b } }')).toBe(101)
    expect(cost('{ a(first: -1) { b } }')).toBe(101)
    expect(cost('query($constructor: Int) { a(first: $constructor) { b } }', {}, {})).toBe(101)
    expect(cost('{ a(first: null) { b } }')).toBe(101)
    expect(cost(query, { field: 0 }, { n: 1e308 })).toBe(0)
    expect(cost(query, {}, JSON.parse('{"n":1e999}'))).toBeUndefined()
  })

  test('The cost of any document equals the count of its fields, with each fragment written out.', () => {
    interface Field {
      name: string
      fields: Field[]
      spread: boolean
    }
    const { fields } = fc.letrec<{ fields: Field[] }>((tie) => ({
      fields: fc.array(
        fc.record({
          name: fc.constantFrom('a', 'b', 'c'),
          fields: fc.oneof({ maxDepth: 4 }, fc.constant([]), tie('fields')) as fc.Arbitrary<
            Field[]
          >,
          spread: fc.boolean(),
        }),
        { minLength: 1, maxLength: 4 },
      ),
    }))
    const count = (all: Field[]): number => all.reduce((sum, one) => sum + 1 + count(one.fields), 0)
    fc.assert(
      fc.property(fields, (all) => {
        const fragments: string[] = []
        const written = (list: Field[]): string =>
          `{ ${list
            .map((one, index) => {
              const own = `x${index}: ${one.name} ${one.fields.length > 0 ? written(one.fields) : ''}`
              if (!one.spread) return own
              const place = fragments.push('') - 1
              fragments[place] = `fragment F${place} on T { ${own} }`
              return `...F${place}`
            })
            .join(' ')} }`
        const query = written(all)
        const expected = count(all)
        expect(cost(`${query} ${fragments.join(' ')}`)).toBe(expected)
      }),
      { numRuns: 200 },
    )
  })

  test('Invalid options are refused with each problem.', () => {
    expect(() => graphqlCost({ field: -1, depthFactor: 0, first: 1 } as never)).toThrow(
      /3 problems/,
    )
  })
})
