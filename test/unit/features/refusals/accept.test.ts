/** The choice between kinds of body by `Accept`. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type BodyKind, preferred } from '../../../../src/features/refusals/accept.ts'
import { shortestRun } from '../../../support/shortest-run.ts'

const chrome =
  'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7'
const firefox = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'
const safari = firefox
const axios = 'application/json, text/plain, */*'

describe('the choice between JSON and HTML', () => {
  test.each<[string, BodyKind]>([
    [chrome, 'html'],
    [firefox, 'html'],
    [safari, 'html'],
    [axios, 'json'],
    ['*/*', 'json'],
    ['', 'json'],
    ['application/json', 'json'],
    ['application/problem+json', 'json'],
    ['text/html', 'html'],
    ['TEXT/HTML', 'html'],
    ['text/*', 'html'],
    ['application/json, text/html', 'html'],
    ['text/html;q=0.9, application/json', 'json'],
    ['text/html;q=0.9, application/problem+json', 'json'],
    ['text/html;q=0.9, application/*', 'json'],
    ['text/html;q=0.5, */*', 'json'],
    ['text/html;q=0.5, application/json;q=0.4, */*;q=0.1', 'html'],
    ['text/html;q=0, */*', 'json'],
    ['text/*, text/html;q=0', 'json'],
    ['text/html;q=0', 'json'],
    ['application/json;q=0, */*', 'html'],
    ['text/html;level=1;q=0.3, application/json;q=0.2', 'html'],
    ['text/html ; Q=0.1 , application/json ; q=0.2', 'json'],
    ['text/html;q=high', 'html'],
    ['text/htmlx', 'json'],
    ['image/png', 'json'],
    [',,;q=1,', 'json'],
  ])('For the Accept %j the kind is %s.', (accept, kind) => {
    expect(preferred(accept, ['json', 'html'])).toBe(kind)
  })
})

describe('the choice between several own bodies', () => {
  test.each<[string, BodyKind[], BodyKind]>([
    ['*/*', ['text', 'html'], 'text'],
    ['*/*', ['json', 'text', 'html'], 'json'],
    [axios, ['json', 'text', 'html'], 'json'],
    ['text/plain, application/json;q=0.5', ['json', 'text'], 'text'],
    ['text/plain', ['json', 'text', 'html'], 'text'],
    [chrome, ['json', 'text', 'html'], 'html'],
    [chrome, ['json', 'text'], 'json'],
    ['text/*', ['json', 'text', 'html'], 'html'],
    ['image/png', ['text'], 'text'],
  ])('For the Accept %j and the kinds %j the kind is %s.', (accept, kinds, kind) => {
    expect(preferred(accept, kinds)).toBe(kind)
  })
})

test('Any Accept selects one of the kinds, and a long one in less than a second.', () => {
  const word = fc.constantFrom(
    'text',
    'html',
    'json',
    'application',
    '*',
    '/',
    ';',
    ',',
    'q=',
    '0.5',
    ' ',
    '"',
  )
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.array(word).map((words) => words.join('')),
      ),
      (accept) => {
        expect(['json', 'html']).toContain(preferred(accept, ['json', 'html']))
      },
    ),
  )
  const shortestMs = shortestRun(1000, () => {
    for (const piece of ['; ', ';q=', '"\\', ';  q', 'text/html;', ' ']) {
      preferred(piece.repeat(32_000 / piece.length), ['json', 'text', 'html'])
    }
  })
  expect(shortestMs).toBeLessThan(1000)
})
