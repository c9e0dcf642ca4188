/** Makes the calls of the examples for Traefik and Envoy, with the paths and field names of these files. No test runs the two proxies. */
import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { API_TOKEN, useApi } from '../../support/api-stack.ts'

const api = useApi({
  policies: [
    {
      name: 'page',
      limit: 1,
      window: '1h',
      match: { path: '/page/*', method: 'POST', host: 'www.example.com' },
      key: ['ip', 'path'],
    },
  ],
})

const example = (path: string) =>
  readFile(new URL(`../../../examples/${path}`, import.meta.url), 'utf8')
/** The value of a key that appears exactly once. */
function valueAt(text: string, key: string): string {
  const found = [...text.matchAll(new RegExp(`^ *(?:- )?${key}: (\\S+)$`, 'gm'))]
  expect(found, key).toHaveLength(1)
  return found[0]![1]!
}

test('The call of the Traefik example is decided, and the example forwards its RateLimit fields.', async () => {
  const text = await example('traefik/dynamic.yml')
  const { origin, pathname } = new URL(valueAt(text, 'address'))
  expect(origin).toBe('https://api.example.com')
  expect(valueAt(text, 'trustForwardHeader')).toBe('false')
  const tokenField = /^ *(\S+): the-token-of-SLUICE_API_TOKEN$/m.exec(text)![1]!
  expect(tokenField).toMatch(new RegExp(valueAt(text, 'authResponseHeadersRegex').slice(1, -1)))
  const ask = (path: string) =>
    api.fetch(pathname, {
      headers: {
        [tokenField]: API_TOKEN,
        'X-Forwarded-For': '192.0.2.1',
        'X-Forwarded-Host': 'www.example.com',
        'X-Forwarded-Method': 'POST',
        'X-Forwarded-Proto': 'http',
        'X-Forwarded-Uri': path,
      },
    })
  const allowed = await ask('/page/traefik?a=1')
  expect(allowed.ok).toBe(true)
  for (const name of ['RateLimit', 'RateLimit-Policy']) {
    expect(text).toMatch(new RegExp(`^ *- ${name}$`, 'm'))
    expect(allowed.headers.has(name)).toBe(true)
  }
  expect((await ask('/page/traefik')).status).toBe(429)
})

test('The call of the Envoy example is decided, and the example forwards its RateLimit fields.', async () => {
  const text = await example('envoy/envoy.yaml')
  const tokenField = /key: (\S+), value: the-token-of-SLUICE_API_TOKEN /.exec(text)![1]!
  const prefix = valueAt(text, 'path_prefix')
  expect(text).toContain(`match: { prefix: ${prefix}/ }`)
  expect(text.match(/^ *normalize_path: true$/gm)).toHaveLength(2)
  const ask = (path: string) =>
    api.fetch(prefix + path, {
      method: 'POST',
      headers: {
        [tokenField]: API_TOKEN,
        'X-Forwarded-For': '192.0.2.1',
        'X-Forwarded-Host': 'www.example.com',
        'X-Client-Address': '192.0.2.1',
      },
    })
  // ext_authz accepts only the status 200 as "allowed".
  expect((await ask('/page/envoy?a=1')).status).toBe(200)
  const refused = await ask('/page/envoy')
  expect(refused.status).toBe(429)
  for (const name of ['ratelimit', 'ratelimit-policy', 'retry-after', 'content-type']) {
    expect(text).toContain(`{ exact: ${name}, ignore_case: true }`)
    expect(refused.headers.has(name)).toBe(true)
  }
})
