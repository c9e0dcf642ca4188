/** `sluice verify` checks what the configuration expects on a running Worker. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { verifyDeployment } from '../../../cli/verify/run.ts'
import type { ConfigOptions, ExpectOptions } from '../../../src/core/config/options.ts'
import { parseConfig } from '../../../src/core/config/parse.ts'
import { defaultFields } from '../../../src/features/defaults.ts'
import { startStack } from '../../support/stack.ts'

const TOKEN = 'a-token-to-verify-with'
const deployed: ConfigOptions = {
  deadline: '10s',
  policies: [
    {
      name: 'login',
      algorithm: 'fixed-window',
      limit: 5,
      window: '1h',
      match: { path: '/login', method: 'POST' },
    },
    {
      name: 'api',
      algorithm: 'fixed-window',
      limit: 1_000,
      window: '1h',
      match: { path: '/api/*' },
      key: 'header:x-user',
    },
    { name: 'burst', limit: 2, window: '1s', match: { path: '/export' } },
    { name: 'export', limit: 30, window: '1h', match: { path: '/export' } },
    { name: 'ping', limit: 3, window: '1s', match: { path: '/ping' } },
  ],
  deny: { name: 'closed', path: '/internal/*' },
}
let stack: Awaited<ReturnType<typeof startStack>>
beforeAll(async () => {
  stack = await startStack({ config: deployed, env: { SLUICE_VERIFY_TOKEN: TOKEN } })
})
afterAll(() => stack?.stop())

async function findingOf(one: ExpectOptions) {
  const findings = await verifyDeployment({
    ...{ url: stack.url, token: TOKEN, maxWaitMs: 0 },
    config: parseConfig({ ...deployed, expect: [one] }, defaultFields),
  })
  expect(findings.find(({ name }) => name === 'configuration')).toMatchObject({ status: 'ok' })
  return findings.find(({ name }) => name === 'expect[0]')!
}

const login: ExpectOptions = { request: { path: '/login', method: 'POST' }, atMost: 10, in: '1m' }
const api: ExpectOptions = {
  ...{ request: { path: '/api/*' }, per: 'header:x-user', atMost: 2_000, in: '1h' },
}

describe('sluice verify', () => {
  test.each<[string, ExpectOptions, string, RegExp]>([
    [
      'holds: a request is refused',
      login,
      'ok',
      /^POST \/login by ip: at most 10 in 1m: 5 requests passed, the next was refused$/,
    ],
    [
      'of a large number holds, with a cost for each request',
      api,
      'ok',
      /: 9 requests passed, each for 101, the next was refused$/,
    ],
    [
      'does not hold',
      { ...login, request: { path: '/login', method: 'GET' } },
      'problem',
      /^GET \/login by ip: at most 10 in 1m, and 11 requests passed in \d+ ms\./,
    ],
    [
      'is about requests that no policy bounds',
      { ...api, request: { path: '/other' }, per: 'ip' },
      'unknown',
      /no policy of this folder bounds it/,
    ],
    [
      'is about clients of another country',
      { ...login, request: { country: 'DE' } },
      'unknown',
      /no request of this machine/,
    ],
    [
      'holds although another policy refuses first, with a cost for each request',
      { request: { path: '/export' }, atMost: 60, in: '1h' },
      'ok',
      /: 0 requests passed, each for 31, the next was refused$/,
    ],
    [
      'is not shown by a policy that admits again within its interval',
      { request: { path: '/ping' }, atMost: 8, in: '1m' },
      'unknown',
      /^not checked: 3 requests passed, and ping refused the next, but ping may admit \d+ \(npx sluice check\)$/,
    ],
    [
      'holds because deny refuses all of its requests',
      { request: { path: '/internal/*' }, atMost: 0, in: '1m' },
      'ok',
      /: 0 requests passed, the next was refused$/,
    ],
    ['is invalid', { ...login, atMost: -1 }, 'problem', /^expect\[0\]\.atMost: expected a whole/],
  ])('says that an expectation %s.', async (_, one, status, text) => {
    const finding = one.atMost < 0 ? await invalid(one) : await findingOf(one)
    expect(finding).toMatchObject({ status, text: expect.stringMatching(text) })
  })
})

async function invalid(one: ExpectOptions) {
  const config = parseConfig({ ...deployed, expect: [one] }, defaultFields)
  const options = { url: stack.url, token: TOKEN, maxWaitMs: 0, config }
  return (await verifyDeployment(options)).find(({ name }) => name === 'expect')!
}
