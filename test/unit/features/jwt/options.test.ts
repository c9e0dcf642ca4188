/** The options of `jwt()`. */
import { describe, expect, test } from 'vitest'
import { ConfigError } from '../../../../src/core/base/errors.ts'
import { type JwtOptions, parseOptions } from '../../../../src/features/jwt/options.ts'

const problems = (options: object) => {
  try {
    parseOptions(options)
    return []
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.message.split('\n').map((line) => line.trim())
  }
}

describe('the options of jwt()', () => {
  test('jwt() has defaults.', () => {
    const bearer = [{ source: 'bearer', name: '' }]
    expect(parseOptions({ secret: 'A' })).toEqual({
      secret: 'A',
      algorithms: ['HS256'],
      from: bearer,
    })
    expect(parseOptions({ jwks: 'https://a/b' })).toEqual({
      jwks: 'https://a/b',
      algorithms: ['RS256', 'PS256', 'ES256', 'EdDSA', 'Ed25519'],
      from: bearer,
    })
  })

  test('The options of jwt() accept one value or a list.', () => {
    const options: JwtOptions = {
      secret: 'A',
      algorithms: ['HS256', 'HS512'],
      issuer: 'i',
      audience: ['a', 'b'],
      from: ['cookie:__Host-id', 'header:X-Token', 'query:a=b', 'bearer'],
    }
    expect(parseOptions(options)).toEqual({
      ...options,
      issuer: ['i'],
      from: [
        { source: 'cookie', name: '__Host-id' },
        { source: 'header', name: 'x-token' },
        { source: 'query', name: 'a=b' },
        { source: 'bearer', name: '' },
      ],
    })
  })

  test.each<[object, string]>([
    [{}, 'jwt.secret: expected either secret or jwks'],
    [{ secret: 'A', jwks: 'https://a/b' }, 'jwt.jwks: expected either secret or jwks'],
    [{ secret: 'not a name' }, 'jwt.secret: expected the name of a variable'],
    [{ secret: 'A', algorithms: [] }, 'jwt.algorithms: expected at least one value'],
    [{ secret: 'A', algorithms: 'none' }, 'jwt.algorithms: expected one of HS256'],
    [{ secret: 'A', algorithms: 'hs256' }, 'jwt.algorithms: expected one of HS256'],
    [{ secret: 'A', algorithms: 'RS256' }, 'jwt.algorithms: expected one of HS256, HS384, HS512,'],
    [{ jwks: 'https://a/b', algorithms: 'HS256' }, 'jwt.algorithms: expected one of RS256'],
    [{ secret: 'A', issuer: '' }, 'jwt.issuer: expected a non-empty string'],
    [{ secret: 'A', audience: [] }, 'jwt.audience: expected at least one value'],
    [{ secret: 'A', from: 'bearer:' }, 'jwt.from: expected "bearer", "header:<name>"'],
    [{ secret: 'A', from: 'header:a b' }, 'jwt.from: expected "bearer", "header:<name>"'],
    [{ secret: 'A', from: 'ip' }, 'jwt.from: expected "bearer", "header:<name>"'],
    [{ secret: 'A', kid: 'x' }, 'jwt.kid: expected one of the fields secret, jwks,'],
    [{ jwks: 'http://issuer.example.com/keys' }, 'jwt.jwks: expected a URL like "https://'],
    [{ jwks: 'http://127.0.0.1.example.com/keys' }, 'jwt.jwks: expected a URL like "https://'],
    [{ jwks: 'http://localhost@example.com/keys' }, 'jwt.jwks: expected a URL like "https://'],
    [{ jwks: 'https://user:word@example.com/keys' }, 'jwt.jwks: expected a URL like "https://'],
    [{ jwks: 'https://' }, 'jwt.jwks: expected a URL like "https://'],
    [{ jwks: 'issuer.example.com' }, 'jwt.jwks: expected a URL like "https://'],
  ])('jwt(%j) has one problem.', (options, problem) => {
    expect(problems(options)).toEqual([expect.stringContaining(problem)])
  })

  test.each(['http://localhost:8080/keys', 'http://127.0.0.1/keys', 'http://[::1]:8080/'])(
    'The URL %s is accepted without TLS because it is on localhost.',
    (jwks) => expect(problems({ jwks })).toEqual([]),
  )
})
