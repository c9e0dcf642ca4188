import { describe, expect, test } from 'vitest'
import { parseConfig } from '../../../../src/core/config/parse.ts'
import { jwt } from '../../../../src/features/jwt/index.ts'
import { errorOf, messageOf, problems, valid } from '../../../support/parse.ts'

test('All problems of a configuration are reported at once, one line each.', () => {
  const config = {
    policies: [
      { name: 'a', limit: 0, windw: '1s' },
      { ...valid, cost: 'x' },
    ],
    origin: 7,
  }
  expect(problems(config).map((line) => line.split(':')[0])).toEqual([
    'origin',
    'policies[0].limit',
    'policies[0].window',
    'policies[0].windw',
    'policies[1].cost',
    'policies[1].name',
  ])
  expect(() => parseConfig(config)).toThrow(/^6 problems\n {2}origin: expected .*, got 7\n/)
})

describe('the message of a problem', () => {
  const config = (change: object, rest: object = {}) => ({
    policies: [{ name: 'login', limit: 5, window: '1m', ...change }],
    ...rest,
  })

  test('The path of a single value in place of a list has no index.', () => {
    expect(messageOf(config({ match: { path: 'a' } }))).toContain(
      'policies[0].match.path: expected a path',
    )
    expect(messageOf(config({ match: { path: ['a'] } }))).toContain(
      'policies[0].match.path[0]: expected',
    )
    expect(messageOf(config({ key: { ip: { v6: 129 } } }))).toContain(
      'policies[0].key.ip.v6: expected',
    )
    expect(messageOf(config({}, { deny: { not: { ip: 'x' } } }))).toContain('deny.not.ip: expected')
    expect(messageOf(config({ match: { header: { '0': '**' } } }))).toContain(
      'match.header[0]: expected',
    )
  })

  test('A message shows a value as written, not as parsed.', () => {
    expect(messageOf(config({ key: 'path:id' }))).toMatch(/^policies\[0\]\.key: .*, got "path:id"/)
    expect(messageOf(config({ limit: 2 ** 51, window: '1h' }))).toContain(', got 2251799813685248')
  })

  test('A message can show a regular expression, a bigint and values that JSON cannot hold.', () => {
    expect(messageOf(config({ match: { path: /^\/api/i } }))).toContain('got /^\\/api/i')
    expect(messageOf(config({ limit: 10n }))).toContain('got 10')
    const circle: Record<string, unknown> = {}
    circle.self = circle
    expect(messageOf(config({ limit: circle }))).toContain('got object')
  })

  test('A message names the policy or the list entry.', () => {
    expect(messageOf(config({ window: '1x' }))).toBe(
      'policies[0].window: expected a duration like "10s", or whole milliseconds, got "1x" (in "login")',
    )
    expect(messageOf(config({}, { deny: [{ name: 'abuse', ip: 'x' }] }))).toMatch(/\(in "abuse"\)$/)
    expect(messageOf(config({}, { deny: { name: 'abuse', ip: 'x' } }))).toMatch(/\(in "abuse"\)$/)
    expect(messageOf(config({ name: 'a b' }))).not.toContain('(in')
  })
})

describe('a secret in the configuration', () => {
  const policies = [{ name: 'a', limit: 1, window: '1m', key: 'jwt:sub' }]
  const made = jwt({ secret: 'JWT_SECRET' })
  const message = (rest: object) => messageOf({ policies, ...rest })
  const messageFor = (options: unknown) => errorOf(() => jwt(options as never))?.message

  test.each([
    's3cr3tVALUE0123456789',
    's3cr3t-VALUE',
    'correcthorsebatterystaple',
    'DEADBEEFDEADBEEFDEADBEEFDEADBEEF',
    'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP',
    'jwt_secret',
  ])('The secret %s is refused, and no message shows it.', (secret) => {
    for (const rest of [
      { jwt: { secret } },
      { jwt: secret },
      { jwt: made, apiKeys: { known: secret } },
      { jwt: made, apiKeys: secret },
    ]) {
      expect(message(rest)).toContain('expected')
      expect(message(rest)).not.toContain(secret)
    }
    for (const options of [{ secret }, { secert: secret }, secret]) {
      expect(messageFor(options)).toContain('expected')
      expect(messageFor(options)).not.toContain(secret)
    }
  })

  test.each(['JWT_SECRET', 'A', 'KEYS', 'JWT_SECRET_2027', 'AUTH0_SIGNING_SECRET_OF_PRODUCTION'])(
    'The name %s is accepted as the name of a variable.',
    (secret) => expect(message({ use: [jwt({ secret })] })).toBe(''),
  )
})
