/** Descriptions of requests whose path Sluice and an origin could read in two ways. */
import { describe, expect, test } from 'vitest'
import { API_TOKEN, useApi } from '../../support/api-stack.ts'

const api = useApi({
  deny: { name: 'search', path: '/search/*' },
  policies: [{ name: 'per-ip', limit: 1000, window: '1h' }],
})

const targets = [
  '/search/../zz',
  '/search/..',
  '/search/./x/../../zz',
  '/search/%2e%2e/zz',
  '/search/%2E./zz?q=1',
  '/search\\..\\zz',
  '/search\\zz',
  '/x//../search/a',
  'http://www.example.com/search/../zz',
]

describe('forward-auth', () => {
  const auth = (path: string, uri: string) =>
    api.call(path, undefined, {
      token: null,
      headers: {
        'Sluice-Token': API_TOKEN,
        'X-Forwarded-Method': 'GET',
        'X-Forwarded-Host': 'www.example.com',
        'X-Forwarded-For': '203.0.113.9',
        'X-Forwarded-Uri': uri,
      },
    })

  test.each([...targets, '/sea\trch/x', '/free#/search/x'])(
    'The target %j is refused with a status that each proxy passes on.',
    async (uri) => {
      for (const [path, status] of [
        ['/auth', 400],
        ['/auth/nginx', 403],
      ] as const) {
        const answer = await auth(path, uri)
        expect([answer.status, answer.headers.get('sluice-status')]).toEqual([status, '400'])
        expect(answer.headers.get('content-type')).toBe(
          path === '/auth' ? 'application/problem+json' : null,
        )
      }
    },
  )

  test.each(['/zz?next=/../x', '/a..b/c.', '/...', '/.well-known/x'])(
    'The target %s has no dot segment.',
    async (uri) => {
      expect((await auth('/auth', uri)).status).toBe(200)
    },
  )
})

test.each([...targets, '/zz#/search'])('/decide refuses the described path %j.', async (target) => {
  const url = target.startsWith('http') ? target : `https://www.example.com${target}`
  const answer = await api.call<{ errors: { path: string; expected: string }[] }>('/decide', {
    request: { url, ip: '203.0.113.9' },
  })
  expect(answer.status).toBe(422)
  expect(answer.body.errors).toMatchObject([
    { path: 'request.url', expected: expect.stringMatching(/segments \. and \.\.$/) },
  ])
})
