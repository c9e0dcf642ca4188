/** The endpoints of `sluice/overrides` in the decision API. */
import { expect, test } from 'vitest'
import { overrides } from '../../../../src/features/overrides/index.ts'
import { createGateway } from '../../../../src/index.ts'

const env = {
  UPSTASH_REDIS_REST_URL: 'http://127.0.0.1:9',
  UPSTASH_REDIS_REST_TOKEN: 'a-token',
  SLUICE_OPERATE_TOKEN: 'an-operate-token-for-tests',
}
const policies = [{ name: 'a', limit: 1, window: '1m' }] as const
const headers = { authorization: `Bearer ${env.SLUICE_OPERATE_TOKEN}` }

test.each(['keys', 'keys/198.51.100.7/limit'])(
  'The endpoint %s exists only with overrides in the configuration.',
  async (path) => {
    const ask = async (more: object) => {
      const gateway = createGateway({ policies: [...policies], ...more })
      const url = `https://www.example.com/_sluice/v1/policies/a/${path}`
      const context = { waitUntil() {}, passThroughOnException() {}, props: {} }
      return (await gateway.fetch(new Request(url, { headers }), env, context)).status
    }
    expect(await ask({})).toBe(404)
    expect(await ask({ overrides: overrides() })).toBe(409) // the policy does not allow them
  },
)
