import { describe, expect, test } from 'vitest'
import type { ConfigError } from '../../../src/base/errors.ts'
import { parseConfig } from '../../../src/config/parse.ts'

describe('the option headers', () => {
  const parse = (headers: unknown) => parseConfig({ policies: [], headers }).headers
  const problem = (headers: unknown) => {
    try {
      parse(headers)
    } catch (error) {
      return (error as ConfigError).message
    }
  }

  test('The option headers defaults to draft-11, and accepts one set, several sets or none.', () => {
    expect(parse(undefined)).toEqual(['draft-11'])
    expect(parse('github')).toEqual(['github'])
    expect(parse(['draft-7', { prefix: 'X-RateLimit-', reset: 'iso' }])).toHaveLength(2)
    expect([parse('off'), parse([])]).toEqual([[], []])
  })

  test.each([
    ['draft-12', /^headers: expected one of draft-11, draft-7, draft-6, github, an object/],
    [
      ['draft-11', 'off'],
      /^headers\[1\]: expected one of .* or "off" outside of a list, got "off"/,
    ],
    [{ prefix: 'X-', reset: 'soon' }, /^headers\.reset: expected one of epoch, delta, iso/],
    [{ prefix: 'X RateLimit' }, /headers\.prefix: expected the start of a header name/],
    [['draft-11', 'draft-7'], /^headers: expected sets that have no field in common/],
    [['draft-7', 'draft-6'], /no field in common/],
    [['github', { prefix: 'X-RateLimit-', reset: 'delta' }], /no field in common/],
    [['draft-6', { prefix: 'RateLimit-', reset: 'epoch' }], /no field in common/],
    [['github', 'github'], /no field in common/],
  ])('The option headers refuses %j.', (headers, message) => {
    expect(problem(headers)).toMatch(message)
  })
})
