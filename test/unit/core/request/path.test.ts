import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  leavesBase,
  normalizePath,
  pathMatcher,
  readings,
} from '../../../../src/core/request/path.ts'

test.each([
  ['/login', '/login'],
  ['/', '/'],
  ['//login', '/login'],
  ['/login/', '/login'],
  ['/login//', '/login'],
  ['/%6Cogin', '/login'],
  ['/%6cogin%2f', '/login'],
  ['/x/../login', '/login'],
  ['/x/%2e%2e/login', '/login'],
  ['/x/..%2Flogin', '/login'],
  ['/./login', '/login'],
  ['/../../login', '/login'],
  ['/x\\..\\login', '/login'],
  ['/%5Clogin', '/login'],
  ['/LOGIN', '/LOGIN'],
  ['/%256Cogin', '/%6Cogin'],
  ['/caf%C3%A9', '/café'],
  ['/bad%ff', '/bad%FF'],
  ['/%ff%2f..%2flogin', '/login'],
  ['/%6c%ff', '/l%FF'],
  ['/login;x=1', '/login'],
  ['/a;x=1/b;y', '/a/b'],
  ['/%3Bx/login', '/login'],
  ['/bad%', '/bad%'],
  ['/.hidden', '/.hidden'],
  ['/a..b/', '/a..b'],
])('The path %s is normalized to %s.', (path, normalized) => {
  expect(normalizePath(path)).toBe(normalized)
})

test.each([
  ['/login', ['/login']],
  ['/x/../%6Cogin/', ['/login']],
  ['/a%2Fb', ['/a/b', '/a%2Fb']],
  ['/a%5cb', ['/a/b', '/a%5Cb']],
  ['/api/x%2F..%2F..', ['/', '/api/x%2F..%2F..', '/api/x%2F..%2F']],
  ['/api/x%5C..%5C..', ['/', '/api/x%5C..%5C..', '/api/x%5C..%5C']],
  ['/api/..;/', ['/', '/api/..', '/api', '/api/..;']],
  ['/login%2f%2f..', ['/', '/login', '/login%2F%2F..', '/login%2F%2F']],
  ['//a/login', ['/a/login', '/login']],
  ['///a%2Fb//login/', ['/a/b/login', '/a%2Fb/login', '/login']],
  ['//login', ['/login', '/']],
  ['/login;x/y', ['/login/y', '/login;x/y', '/login']],
  ['//a;/login', ['/a/login', '/a;/login', '/a', '/login']],
  ['/users/;9', ['/users', '/users/;9']],
  ['/users/%3b9', ['/users', '/users/;9']],
  ['/login%0a', ['/login\n', '/login']],
  ['/login%0D%0A', ['/login\r\n', '/login']],
  ['/login/%0a/', ['/login/\n', '/login']],
  ['/login%20%00%c2%85', ['/login \0\x85', '/login']],
  ['/login;x%0a', ['/login', '/login;x\n', '/login;x']],
  ['/%0a', ['/\n', '/']],
  ['/login.%20.', ['/login. .', '/login']],
  ['/login.php', ['/login.php']],
  ['/login.php/', ['/login.php']],
  ['/wp-login.php/x', ['/wp-login.php/x', '/wp-login.php', '/x']],
  ['/LOGIN.PHP/x', ['/LOGIN.PHP/x', '/LOGIN.PHP', '/x']],
  ['/login.php%2fx', ['/login.php/x', '/login.php', '/x', '/login.php%2Fx']],
  [
    '/index.php%2f/admin/%2e%2e%2fx', // Apache and a router of PHP, which resolves no `..`
    ['/index.php/x', '/index.php', '/x', '/index.php%2F/admin/..%2Fx', '/admin/..%2Fx'],
  ],
  ['/a/index.php/login', ['/a/index.php/login', '/a/index.php', '/login', '/a/login']],
  ['/login.aspx/x/..', ['/login.aspx']],
  ['/v1.2/login', ['/v1.2/login']],
  ['/.well-known/x', ['/.well-known/x']],
  // Ruby: /^\/login$/
  ['/x%0a/login', ['/x\n/login', '/x', '/login']],
  ['/%0a/login', ['/\n/login', '/', '/login']],
  ['/login%0ax', ['/login\nx', '/login']],
  ['/x%0d%0a/login/%0d', ['/x\r\n/login/\r', '/x', '/login']],
  ['/a//..%2Fb', ['/b', '/a/b', '/a/..%2Fb']],
  [
    '/x%2F..%2Fapi/y%5C..%5C..',
    [
      '/',
      '/api/y%5C..%5C..',
      '/api/y%5C..%5C',
      '/x%2F..%2Fapi/y%5C..%5C..',
      '/x%2F..%2Fapi/y%5C..%5C',
    ],
  ],
])('The path %s has the readings %j.', (path, paths) => {
  expect(readings(path)).toEqual(paths)
})

test.each([
  ['/x', '/admin/%2e%2E/x', ['/x', '/admin/../x']],
  ['/x', '/admin/..\\x', ['/x', '/admin/../x', '/admin/..%5Cx']],
  ['/users/8/x', '/users/8\\x', ['/users/8/x', '/users/8%5Cx']],
  ['/users/', '/users/.', ['/users', '/users/.']],
])('The path %s that was sent as %s has the readings %j.', (path, sent, paths) => {
  expect(new URL(sent, 'https://a').pathname).toBe(path)
  expect(readings(path, sent)).toEqual(paths)
})

test('Reading a long path takes no quadratic time.', () => {
  const start = performance.now()
  readings(`/${'%0a/'.repeat(100_000)}x`)
  expect(readings(`/${'a.php/'.repeat(100_000)}x`).length).toBeGreaterThan(16)
  expect(performance.now() - start).toBeLessThan(2_000)
})

test.each([
  ['/', false],
  ['/x/y/', false],
  ['//x', false],
  ['/x%2F..%2Fy', false],
  ['/x/..;/y', false],
  ['/..x/..', false],
  ['/%252e%252e%252fx', false],
  ['/..', true],
  ['/..%2Fx', true],
  ['/%2E%2E%5Cx', true],
  ['/..;/x', true],
  ['/x/..;a/..;b/x', true],
  ['/x%2F..%2F..', true],
  ['/..%2Fbase%2Fx', true],
  ['/..%2Fbase', true],
  ['/x%0A/..;/..;/base', true],
])('For the path %s, leavesBase returns %j.', (path, leaves) => {
  expect(leavesBase(path)).toBe(leaves)
})

test('Every spelling of a path is normalized to the same path.', () => {
  const spelledCharacter = fc
    .constantFrom(...'login')
    .chain((character) =>
      fc.constantFrom(
        character,
        `%${character.charCodeAt(0).toString(16)}`,
        `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
      ),
    )
  const noise = fc.constantFrom('/', '//', '/./', '/x/../', '/%2e/', '/%2E%2e/')
  fc.assert(
    fc.property(
      noise,
      fc.array(spelledCharacter, { minLength: 1, maxLength: 8 }),
      fc.constantFrom('', '/', '//', '/.'),
      (before, word, after) => {
        const plain = `/${decodeURIComponent(word.join(''))}`
        expect(normalizePath(before + word.join('') + after)).toBe(plain)
      },
    ),
  )
})

test.each([
  ['/login', ['/login', '/LOGIN'], ['/', '/login2', '/a/login']],
  ['/caf%E9', ['/caf%E9'], ['/caf']],
  ['/%3Aid', ['/:id'], ['/7']],
  ['/login/', ['/login'], ['/login/x']],
  ['/', ['/'], ['/a']],
  ['/*', ['/', '/a', '/a/b'], []],
  ['/api/*', ['/api', '/api/a', '/api/a/b'], ['/apix', '/', '/x/api']],
  ['/users/:id', ['/users/7', '/users/é'], ['/users', '/users/7/x']],
  ['/users/:id/*', ['/users/7', '/users/7/x/y'], ['/users']],
  ['/GİRİŞ', ['/GİRİŞ'.toLowerCase()], []],
  ['/a.b', ['/a.b'], ['/axb']],
  ['/a(b)+$', ['/a(b)+$'], ['/ab']],
])('The pattern %s matches the paths %j and not the paths %j.', (pattern, yes, no) => {
  const matches = pathMatcher(pattern)
  expect(yes.filter((path) => !matches(path))).toEqual([])
  expect(no.filter(matches)).toEqual([])
})
