import { inspect } from 'node:util'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { StoreError } from '../../src/core/base/errors.ts'
import type { PolicyOptions } from '../../src/core/config/options.ts'
import { parseConfig } from '../../src/core/config/parse.ts'
import { createUpstashStore } from '../../src/core/connection/upstash/upstash.ts'
import { type FaultText, kinds } from '../support/fault-proxy/index.ts'
import { type FaultStack, startFaultStack } from '../support/fault-stack.ts'
import { testNoLeaks } from '../support/no-leaks.ts'
import { everySecret, secrets, secretsIn } from '../support/secrets.ts'

/** All faults, and the variants of `parrot` that the client reads in different ways. */
const faults: FaultText[] = [
  ...(Object.keys(kinds) as (keyof typeof kinds)[]),
  'parrot=200',
  'parrot=401',
  'parrot=500',
]
const policies = (['allow', 'deny', 'local'] as const).map(
  (onStoreError): PolicyOptions => ({
    name: onStoreError,
    limit: 3,
    window: '1h',
    key: ['ip', 'header:x-api-key', 'header:x-email', 'header:cookie'],
    onStoreError,
    match: { path: `/${onStoreError}/*` },
  }),
)

let stack: FaultStack
beforeAll(async () => {
  stack = await startFaultStack()
})
afterAll(() => stack.stop())

describe('the search for secrets', () => {
  test.each([
    ['plain', (text: string) => text],
    ['plain', (text: string) => text.toUpperCase()],
    ['base64', (text: string) => Buffer.from(`a${text}`).toString('base64')],
    ['base64', (text: string) => Buffer.from(`"ab${text}"`).toString('base64url')],
    ['hex', (text: string) => Buffer.from(text).toString('hex').toUpperCase()],
    ['URL', (text: string) => Buffer.from(text).toString('hex').replace(/../g, '%$&')],
  ])(
    'The search for secrets finds every secret in %s encoding (case %#).',
    async (encoding, encode) => {
      for (const [name, secret] of Object.entries(await everySecret())) {
        expect(secretsIn(`a line with ${encode(secret)}.`, { [name]: secret })).toContain(
          `${name} (${encoding})`,
        )
      }
    },
  )
})

describe('output', () => {
  test('Refusals and faults of every kind are logged.', async () => {
    await stack.renew({ policies, deadline: '150ms' })
    for (const fault of [null, ...faults]) {
      await stack.faults.set(fault)
      await Promise.all(
        ['/allow', '/deny', '/local'].flatMap((path) =>
          [secrets.ipv4, secrets.ipv6].map((ip) =>
            stack.get(`${path}/${secrets.path}?token=${secrets.apiKey}`, {
              'cf-connecting-ip': ip,
            }),
          ),
        ),
      )
    }
    await stack.faults.set('reset')
    // A late reply of an earlier fault starts the count of failures anew.
    await vi.waitFor(
      async () => {
        for (let n = 0; n < 5; n++) await stack.get(`/deny/${secrets.path}?token=${secrets.apiKey}`)
        expect(await stack.logged('breaker-opened')).not.toEqual([])
      },
      { timeout: 20_000 },
    )
  })
})

test('The error of every fault, in any printed form, contains no secret of the call.', async () => {
  const [policy] = parseConfig({ policies: [{ name: 'a', limit: 5, window: '1h' }] }).policies
  const limits = [{ subject: `ip=${secrets.ipv6}`, terms: policy!, cost: 1 }]
  const printed: string[] = []
  for (const fault of faults) {
    await stack.faults.set(fault)
    const store = createUpstashStore({
      url: stack.faults.url,
      token: secrets.token,
      deadlineMs: 100,
    })
    await store.decide([{ mode: 'take', limits }]).catch((error) => {
      expect(error).toBeInstanceOf(StoreError)
      printed.push(error.stack, String(error), JSON.stringify(error), inspect(error, { depth: 9 }))
    })
  }
  await stack.faults.set(null)
  expect(printed.length).toBeGreaterThan(4 * 20)
  // The stack trace contains paths and line numbers of our files.
  expect(secretsIn(printed.join('\n'), await everySecret())).toEqual([])
})

testNoLeaks(() => stack)
