/** Checks answers of the decision API against its OpenAPI description, with an independent validator. */
import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, test } from 'vitest'
import type { ConfigOptions } from '../../../src/core/config/options.ts'
import {
  API_TOKEN,
  type CallOptions,
  type LocalApi,
  OPERATE,
  useApi,
} from '../../support/api-stack.ts'
import { openapi } from '../../support/json-schema.ts'

const policy = { limit: 2, window: '1h', algorithm: 'fixed-window' } as const
const config: ConfigOptions = {
  deny: { name: 'abuse', ip: '192.0.2.66' },
  allow: { name: 'friends', ip: '192.0.2.77' },
  policies: [
    {
      ...policy,
      name: 'banning',
      limit: 1,
      penalty: { after: 2, within: '1h', ban: '1h' },
      match: { path: '/banning' },
    },
    { ...policy, name: 'slots', algorithm: 'concurrency', match: { path: '/slots' } },
    {
      ...policy,
      name: 'keyed',
      key: 'header:x-key',
      onMissingKey: 'refuse',
      match: { path: '/keyed' },
    },
    { ...policy, name: 'ghost', mode: 'shadow', window: 'month', match: { path: '/ghost' } },
    { ...policy, name: 'closed', onStoreError: 'deny', match: { path: '/closed' } },
    { ...policy, name: 'local', onStoreError: 'local', match: { path: '/local' } },
  ],
}
const request = (path: string, ip = '203.0.113.1') => ({
  request: { url: `https://a.example${path}`, ip },
})
const paths = ['/banning', '/slots', '/keyed', '/ghost', '/closed', '/local', '/none']
const ips = ['203.0.113.1', '192.0.2.66', '192.0.2.77']
const requests = paths.flatMap((path) => ips.map((ip) => request(path, ip)))
const wrong = ['', '{', '[]', 'null', '7', ' '.repeat(70_000), '{"key":"x"}', '{"request":{}}']
const operations = ['peek', 'reset', 'ban', 'unban', 'try']

const ajv = new Ajv2020({ strict: false })
ajv.addSchema(openapi, 'api')
const validators = new Map<string, ReturnType<typeof ajv.compile>>()

/** The validator of a schema of the description. */
function validatorOf(schema: object) {
  const text = JSON.stringify(schema).replaceAll('"#/', '"api#/')
  const validate = validators.get(text) ?? ajv.compile(JSON.parse(text))
  validators.set(text, validate)
  return validate
}

/** Checks that the description has the status of an answer, and that the answer is empty or valid. */
async function check(
  api: LocalApi,
  route: string,
  path: string,
  body: unknown,
  options: CallOptions,
) {
  const answer = await api.call<unknown>(path, body, options)
  const method = route.startsWith('/auth') || body === undefined ? 'get' : 'post'
  const place = `${route} ${answer.status}`
  const { responses } = openapi.paths[route][method]
  const response = responses[answer.status]
  expect(response, place).toBeDefined()
  const { $ref } = response
  const { content } = $ref ? openapi.components.responses[$ref.split('/').at(-1)] : response
  const type = answer.headers.get('content-type')
  if (type === null) return expect(answer.body, place).toBe('')
  expect(Object.keys(content ?? {}), place).toContain(type)
  const validate = validatorOf(content[type].schema)
  expect([place, validate(answer.body), validate.errors]).toEqual([place, true, null])
}

describe.each([
  ['with Redis', {}],
  ['without Redis', { UPSTASH_REDIS_REST_URL: 'http://127.0.0.1:9' }],
])('answers %s', (state, env: Record<string, string>) => {
  const api = useApi(config, env)

  test.each(['/decide', '/refund', '/settle'])(
    `The answers of %s match the description ${state}.`,
    async (path) => {
      for (const body of [...requests, ...requests, ...requests, requests, ...wrong]) {
        await check(api, path, path, body, {})
      }
      for (const token of [OPERATE, 'wrong', null]) await check(api, path, path, {}, { token })
    },
  )

  test(`The answers of forward-auth match the description ${state}.`, async () => {
    const asking = paths.flatMap((path) => [path, path, path, path])
    for (const [route, end] of [
      ['/auth', ''],
      ['/auth/nginx', ''],
      ['/auth/envoy/{target}', '/banning'],
    ] as const) {
      for (const token of [API_TOKEN, OPERATE, 'wrong']) {
        // The answer to a token without the scope does not depend on the request.
        const uris = token === API_TOKEN ? asking : asking.slice(0, 1)
        for (const [uri, ip] of uris.flatMap((uri) => ips.map((ip) => [uri, ip] as const))) {
          const path = end === '' ? route : `/auth/envoy${uri}`
          const headers = {
            'Sluice-Token': token,
            'X-Forwarded-For': ip,
            'X-Forwarded-Uri': uri,
            'X-Forwarded-Method': 'GET',
          }
          await check(api, route, path, undefined, { token: null, headers })
        }
        const headers = { 'Sluice-Token': token, 'X-Forwarded-Host': 'a b' }
        await check(api, route, route.replace('{target}', 'x'), undefined, {
          token: null,
          headers,
        })
      }
    }
  })

  test(`The answers to operators match the description ${state}.`, async () => {
    for (const operation of operations) {
      for (const name of [...config.policies.map(({ name }) => name), 'none']) {
        const length = operation === 'ban' ? { for: '1h' } : {}
        const path = `/policies/${name}/${operation}`
        const targets = [{ key: '203.0.113.1' }, { subject: 'A'.repeat(16) }, request(`/${name}`)]
        for (const body of [...targets, ...requests.slice(0, 3)]) {
          const route = `/policies/{name}/${operation}`
          await check(api, route, path, { ...body, ...length }, { token: OPERATE })
        }
      }
    }
    for (const token of [OPERATE, API_TOKEN, null]) {
      for (const path of ['/policies', '/stats', '/metrics']) {
        await check(api, path, path, undefined, { token })
      }
    }
  })
})
