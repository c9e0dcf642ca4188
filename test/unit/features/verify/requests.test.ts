/** How an app with `verify()` treats verified requests. */
import { createServer } from 'node:http'
import { beforeAll, expect, test } from 'vitest'
import { createClient, newNonce } from '../../../../cli/verify/client.ts'
import { ANSWER, FIELD, signed, VALID_MS } from '../../../../src/features/verify/field.ts'
import { verify } from '../../../../src/features/verify/index.ts'
import { rateLimiter } from '../../../../src/hosts/node/node.ts'
import { configOf, listen, useDatabase } from '../../../support/node-servers.ts'

const TOKEN = 'a-token-to-verify-with'
const GET = { method: 'GET', path: '/', headers: {} }
useDatabase()
beforeAll(() => void Object.assign(process.env, { SLUICE_VERIFY_TOKEN: TOKEN }))

async function startApp() {
  let reached = 0
  const policies = [
    { name: 'all', algorithm: 'fixed-window', limit: 6, window: '1h', cost: 3 },
  ] as const
  const limit = rateLimiter(configOf({ policies: [...policies], use: [verify()] }))
  const server = createServer(async (request, response) => {
    if (!(await limit(request, response))) return
    reached += 1
    response.end('ok')
  })
  const url = await listen(server)
  const target = { url, headers: {}, through: false }
  return {
    reached: () => reached,
    client: (token = TOKEN, through = false) => createClient({ ...target, token, through }),
    status: async () => (await fetch(url)).status,
    /** True if Sluice has recognized a request with this field. */
    recognizes: async (field: string) =>
      (await fetch(url, { headers: { [FIELD]: field } })).headers.has(ANSWER),
  }
}

test('A verified request uses the quota of its own check only, and does not reach the app.', async () => {
  const app = await startApp()
  const nonce = newNonce()
  const passed = async (own: string) =>
    (await app.client().send(GET, { nonce: own, policy: 'all' })).decision?.allowed
  expect([await passed(nonce), await passed(nonce), await passed(nonce)]).toEqual([
    true,
    true,
    false,
  ])
  expect(await passed(newNonce())).toBe(true)
  expect(app.reached()).toBe(0)
  expect(await app.status()).toBe(200)
  await app.client(TOKEN, true).send(GET, { nonce: newNonce() })
  expect(app.reached()).toBe(2)
})

test('A stated cost has an effect only above that of the policy.', async () => {
  const client = (await startApp()).client()
  const costs = [1, 3, 6].map(async (cost) => {
    const { decision } = await client.send(GET, { nonce: newNonce(), policy: 'all', cost })
    return decision?.policy?.applies && decision.policy.cost
  })
  expect(await Promise.all(costs)).toEqual([3, 3, 6])
})

test('A field has no effect with another token, for another time or after a change.', async () => {
  const { recognizes } = await startApp()
  const claim = { nonce: 'a-nonce-of-this-test', count: 1, at: Date.now(), policy: 'all' }
  const own = await signed(claim, TOKEN)
  const at = (ms: number) => signed({ ...claim, at: claim.at + ms }, TOKEN)
  expect(await recognizes(own)).toBe(true)
  expect(await recognizes(own.replace('a-nonce', 'b-nonce'))).toBe(false)
  expect(await recognizes(await signed(claim, 'another-token-of-24-letters'))).toBe(false)
  expect(await recognizes(await at(-VALID_MS - 1000))).toBe(false)
  expect(await recognizes(await at(VALID_MS + 10_000))).toBe(false)
  expect(await recognizes(await at(10_000 - VALID_MS))).toBe(true)
})
