import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ask, type Question } from '../../dev/proxies/client.ts'
import type { RunningProxy } from '../../dev/proxies/run.ts'
import { type Stack, startStack } from '../../dev/stack.ts'
import { binaries, config, echoOf, env, names, runProxyOf, token } from '../support/forward-auth.ts'

let stack: Stack
beforeAll(async () => {
  stack = await startStack({ config, env })
})
afterAll(() => stack?.stop())

describe.each(names)('%s', (name) => {
  const binary = binaries[name]
  const run = () => runProxyOf(stack, name)

  describe.skipIf(!binary)('with its example configuration', () => {
    let proxy: RunningProxy
    beforeAll(async () => {
      proxy = await run()
    })
    afterAll(() => proxy?.stop())
    const get = (path: string, question?: Question) => ask(proxy.url + path, question)

    describe('a client whose quota is spent', () => {
      const path = `/page/${name}-spent`
      beforeAll(async () => {
        for (const status of [200, 200, 429]) expect((await get(path)).status).toBe(status)
      })

      test.each<[string, Record<string, string | string[]>]>([
        ['an address in X-Forwarded-For', { 'X-Forwarded-For': '198.51.100.7' }],
        [
          'several of them',
          { 'X-Forwarded-For': ['198.51.100.7', '198.51.100.8, 127.0.0.1', '198.51.100.9'] },
        ],
        ['X-Real-IP', { 'X-Real-IP': '198.51.100.7' }],
        ['CF-Connecting-IP', { 'CF-Connecting-IP': '198.51.100.7' }],
        [
          'CF-Connecting-IP with the address of the caller',
          { 'CF-Connecting-IP': '127.0.0.1', 'X-Forwarded-For': '198.51.100.7' },
        ],
        ['Forwarded, True-Client-IP', { Forwarded: 'for=198.51.100.7', 'True-Client-IP': '::1' }],
        ['another path', { 'X-Forwarded-Uri': '/free', 'X-Original-URI': '/free' }],
        ['another method', { 'X-Forwarded-Method': 'OPTIONS', 'X-HTTP-Method-Override': 'PUT' }],
        ['another host', { 'X-Forwarded-Host': 'else.example', 'X-Forwarded-Proto': 'ftp' }],
        ['a guessed token', { 'Sluice-Token': 'none-of-yours' }],
        ['two guessed tokens', { 'Sluice-Token': ['none-of-yours', 'nor-this-one'] }],
        ['a price', { 'Sluice-Cost': '0' }],
        ['a decision', { 'Sluice-Status': '200' }],
        ['fields that Connection removes', { Connection: 'X-Forwarded-For, Sluice-Token' }],
        ['other spellings of the fields', { X_Forwarded_For: '198.51.100.7', sluice_token: 'x' }],
      ])('A client does not get another quota with %s.', async (_, headers) => {
        expect((await get(path, { headers })).status).toBe(429)
      })

      test('A client does not get another quota with a query.', async () => {
        const query = 'X-Forwarded-Uri=/free&ip=198.51.100.7&request=x&token=x'
        expect((await get(`${path}?${query}`)).status).toBe(429)
      })

      test('A client does not get another quota with another spelling of the path.', async () => {
        for (const target of [
          `/${path}`,
          path.replace('page', '%70age'),
          path.replace('/page/', '/x/../page/'),
          `http://else.example${path}`,
        ]) {
          expect((await get('', { target })).status, target).toBe(429)
        }
      })
    })

    // For Caddy and the app behind it, # is a character of the path.
    if (name === 'nginx') {
      test('A fragment in the target does not get a request past a deny list.', async () => {
        for (const target of ['/x/../forbidden#', '/forbidden#/../free', '/free#/../forbidden']) {
          expect((await get('', { target })).status, target).toBe(503)
        }
      })
    }

    test.each(['a#b', 'a?b', 'a/b', 'a@b', '[', '', ' '])(
      'An invalid Host, %j, does not get a request past a deny list.',
      async (host) => {
        const before = stack.origin.requests()
        const { status } = await get('/forbidden', { headers: { Host: host } })
        expect(status).toBeGreaterThanOrEqual(400)
        expect(stack.origin.requests()).toBe(before)
      },
    )

    test('Neither the client nor the app sees the token of the decision API.', async () => {
      const headers = { 'Sluice-Token': 'a-guess', 'Sluice-Cost': '0', 'Sluice-Other': 'x' }
      for (const path of [`/page/${name}-token`, '/free', '/forbidden', '/_sluice/ask']) {
        const { rawHeaders, body } = await get(path, { headers })
        expect(rawHeaders.join() + body).not.toContain(token)
        // nginx cannot remove fields by a prefix. The decision API ignores the other fields.
        expect(body).not.toMatch(name === 'nginx' ? /"sluice-(token|cost)"/ : /"sluice-/)
      }
    })

    test('A request to the proxy’s own location gets no special answer.', async () => {
      const answer = await get('/_sluice/ask', { headers: { 'X-Forwarded-Uri': '/free' } })
      expect(answer.status).toBe(name === 'nginx' ? 404 : 200)
      const api = await get('/_sluice/v1/auth')
      expect(echoOf(api).url).toBe('/_sluice/v1/auth')
    })
  })
})
