import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { parseConfig } from '../../../../src/core/config/parse.ts'
import type { HeaderSet } from '../../../../src/core/config/schema/config.ts'
import { withDecisionFields } from '../../../../src/core/respond/response.ts'
import { allowed, state } from '../../../support/decisions.ts'
import { every, merged } from '../../../support/ratelimit-fields.ts'
import { shortestRun } from '../../../support/shortest-run.ts'

const now = Date.UTC(2026, 10, 20, 12, 0, 0, 400)
beforeEach(() => void vi.useFakeTimers({ now, toFake: ['Date'] }))
afterEach(() => void vi.useRealTimers())

describe('the merge with the fields of an origin', () => {
  const ours11 = { 'ratelimit-policy': '"a";q=10;w=60', ratelimit: '"a";r=9;t=6' }
  const ours7 = {
    'ratelimit-policy': '10;w=60',
    ratelimit: 'limit=10, remaining=9, reset=60',
  }
  const ours6 = {
    'ratelimit-policy': '10;w=60',
    'ratelimit-limit': '10',
    'ratelimit-remaining': '9',
    'ratelimit-reset': '60',
  }
  const oursX = {
    'x-ratelimit-limit': '10',
    'x-ratelimit-remaining': '9',
    'x-ratelimit-reset': '60',
  }
  const delta = { prefix: 'X-RateLimit-', reset: 'delta' } as const
  const joined = (policies: string, limit: string) => ({
    'ratelimit-policy': `${policies}, ${ours11['ratelimit-policy']}`,
    ratelimit: `${limit}, ${ours11.ratelimit}`,
  })

  test.each<[string, HeaderSet, Record<string, string>, Record<string, string> | 'unchanged']>([
    // Lists of draft-11 are joined.
    ['no fields', 'draft-11', {}, ours11],
    [
      'a list of draft-11',
      'draft-11',
      { 'ratelimit-policy': '"z";q=5;w=1', ratelimit: '"z";r=1;t=1' },
      joined('"z";q=5;w=1', '"z";r=1;t=1'),
    ],
    [
      'a list with parameters of every kind',
      'draft-11',
      {
        'ratelimit-policy':
          '"z\\"\\\\;q=1";q=5;qu="content-bytes";pk=:sdfjLJUOUH==:;d=@1;f=1.5;t=tok/n;b=?1;n;s=%"%c3%bc"',
        ratelimit: '"z";r=1,"y"; r=2\t,\t"x";r=3',
      },
      joined(
        '"z\\"\\\\;q=1";q=5;qu="content-bytes";pk=:sdfjLJUOUH==:;d=@1;f=1.5;t=tok/n;b=?1;n;s=%"%c3%bc"',
        '"z";r=1,"y"; r=2\t,\t"x";r=3',
      ),
    ],
    [
      'a list of policies only',
      'draft-11',
      { 'ratelimit-policy': '"z";q=5' },
      { ...ours11, 'ratelimit-policy': '"z";q=5, "a";q=10;w=60' },
    ],
    ['empty fields', 'draft-11', { 'ratelimit-policy': '', ratelimit: '' }, ours11],
    // Of two policies with the same name, the one with less remaining is used.
    ['a policy of the same name with less', 'draft-11', { ratelimit: '"a";r=8;t=1' }, 'unchanged'],
    [
      'a policy of the same name with as much',
      'draft-11',
      { ratelimit: '"a";r=9;t=1' },
      'unchanged',
    ],
    ['a policy of the same name with more', 'draft-11', { ratelimit: '"a";r=10;t=1' }, ours11],
    [
      'a policy of the same name without a state',
      'draft-11',
      { 'ratelimit-policy': '"a";q=1;w=1' },
      ours11,
    ],
    // Another draft
    [
      'draft-7 with less',
      'draft-11',
      { 'ratelimit-policy': '5;w=1', ratelimit: 'limit=5, remaining=0, reset=5' },
      'unchanged',
    ],
    [
      'draft-7 with more',
      'draft-11',
      { 'ratelimit-policy': '50;w=1', ratelimit: 'limit=50, remaining=10, reset=5' },
      ours11,
    ],
    [
      'draft-6 with less',
      'draft-11',
      { 'ratelimit-policy': '5;w=1', 'ratelimit-limit': '5', 'ratelimit-remaining': '4' },
      'unchanged',
    ],
    [
      'draft-6 with more, which keeps its other fields',
      'draft-11',
      { 'ratelimit-policy': '50;w=1', 'ratelimit-remaining': '40' },
      { ...ours11, 'ratelimit-remaining': '40' },
    ],
    [
      'draft-3, which has no field in common',
      'draft-11',
      { 'ratelimit-limit': '5', 'ratelimit-remaining': '0', 'ratelimit-reset': '1' },
      { ...ours11, 'ratelimit-limit': '5', 'ratelimit-remaining': '0', 'ratelimit-reset': '1' },
    ],
    [
      'draft-3, which has no field in common',
      'draft-7',
      { 'ratelimit-remaining': '0' },
      { ...ours7, 'ratelimit-remaining': '0' },
    ],
    ['draft-11 with a parameter twice', 'draft-7', { ratelimit: '"z";r=1;r=10' }, ours7],
    ['draft-11 with less', 'draft-7', { ratelimit: '"z";r=50, "y";r=1' }, 'unchanged'],
    ['draft-11 with more', 'draft-7', { ratelimit: '"z";r=50, "y";r=10' }, ours7],
    // One number in each field
    ['less remaining', 'draft-7', { ratelimit: 'limit=5, remaining=8, reset=1' }, 'unchanged'],
    [
      'less remaining and a policy',
      'draft-7',
      { ratelimit: 'remaining=3;x=";", limit=5', 'ratelimit-policy': '5;w=1' },
      'unchanged',
    ],
    ['more remaining', 'draft-7', { ratelimit: 'limit=50, remaining=48, reset=1' }, ours7],
    ['the same key twice', 'draft-7', { ratelimit: 'remaining=1, remaining=10' }, ours7],
    ['no remaining', 'draft-7', { ratelimit: 'limit=5, reset=1' }, ours7],
    ['less remaining', 'draft-6', { 'ratelimit-remaining': '8' }, 'unchanged'],
    [
      'more remaining and other fields, which are replaced',
      'draft-6',
      { 'ratelimit-limit': '500', 'ratelimit-remaining': '100', 'ratelimit-reset': '1' },
      ours6,
    ],
    [
      'less remaining',
      'github',
      { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '1795177801' },
      'unchanged',
    ],
    ['less remaining', delta, { 'x-ratelimit-remaining': '8' }, 'unchanged'],
    ['as much remaining', delta, { 'x-ratelimit-remaining': '9' }, 'unchanged'],
    ['a number with parameters', delta, { 'x-ratelimit-remaining': '8;w=60' }, 'unchanged'],
    ['a negative number', delta, { 'x-ratelimit-remaining': '-1' }, 'unchanged'],
    [
      'more remaining, with used and resource, which are removed',
      delta,
      {
        'x-ratelimit-limit': '5000',
        'x-ratelimit-remaining': '4999',
        'x-ratelimit-used': '1',
        'x-ratelimit-reset': '1795177801',
        'x-ratelimit-resource': 'core',
      },
      oursX,
    ],
    ['two numbers, one of which is less', delta, { 'x-ratelimit-remaining': '50, 8' }, 'unchanged'],
    [
      'two numbers, the first of which is less',
      delta,
      { 'x-ratelimit-remaining': '8, 50' },
      'unchanged',
    ],
    ['two numbers that are more', delta, { 'x-ratelimit-remaining': '50, 10' }, oursX],
    ['other prefixes', delta, { 'x-limit-remaining': '1' }, { ...oursX, 'x-limit-remaining': '1' }],
    // Malformed values are ignored.
    ...[
      '',
      'soon',
      '1e1',
      '0x1',
      '1.5',
      '1 2',
      '1;',
      '1, soon',
      '\xfc',
      '9'.repeat(400),
      ',,;,',
      '"1"',
    ].map((value): [string, HeaderSet, Record<string, string>, Record<string, string>] => [
      `the malformed value (${value.slice(0, 9)})`,
      delta,
      { 'x-ratelimit-limit': '1', 'x-ratelimit-remaining': value },
      oursX,
    ]),
    ...[
      'soon',
      '"z',
      '"z";r=1,',
      ',"z";r=1',
      '"z" "y"',
      '"z";R=1',
      '"z";r=1;',
      '("z");r=1',
      'z;r=1',
      '"\xfc";r=1',
      '"z\\n";r=1',
      '"z";r=:!:',
      '"z";r=1234567890123456',
      'remaining=1,',
      'Remaining=1',
      'remaining=1 limit=2',
    ].map((value): [string, HeaderSet, Record<string, string>, Record<string, string>] => [
      `the malformed value (${value})`,
      'draft-11',
      { 'ratelimit-policy': '"z";q=1', ratelimit: value },
      ours11,
    ]),
  ])(
    'The stricter fields win if the origin sends %s and the limiter uses the set %j.',
    (_, set, origin, expected) => {
      const plain = { 'content-type': 'text/plain;charset=UTF-8', 'retry-after': '120' }
      expect(merged(set, { ...origin, ...plain })).toEqual({
        ...(expected === 'unchanged' ? origin : expected),
        ...plain,
      })
    },
  )

  test('The fields of an origin are compared for each set separately.', () => {
    const origin = { ratelimit: '"z";r=100', 'x-ratelimit-remaining': '3' }
    expect(merged(['draft-11', delta], origin)).toMatchObject({
      ratelimit: '"z";r=100, "a";r=9;t=6',
      'x-ratelimit-remaining': '3',
    })
  })

  test('The option "off" leaves the fields of an origin unchanged.', () => {
    const response = new Response('x', { headers: { ratelimit: 'soon' } })
    const off = parseConfig({ policies: [], headers: 'off' })
    expect(withDecisionFields(response, allowed(state()), off)).toBe(response)
  })

  test.each([
    `"${'a'.repeat(50_000)}`,
    `"a"${';a=b'.repeat(12_000)}!`,
    '"a",'.repeat(12_000),
    ','.repeat(50_000),
    'a'.repeat(50_000),
    '1,'.repeat(25_000),
    `"a";r=${'1'.repeat(50_000)}`,
  ])('Merging very long fields of an origin takes less than a second.', (value) => {
    const shortestMs = shortestRun(1000, () => {
      for (const set of every) {
        merged(set, {
          ratelimit: value,
          'ratelimit-remaining': value,
          'x-ratelimit-remaining': value,
        })
      }
    })
    expect(shortestMs).toBeLessThan(1000)
  })
})
