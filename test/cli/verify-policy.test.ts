/** What `sluice verify` says of healthy apps whose policies are hard to prove. */
import { createServer } from 'node:http'
import { beforeAll, expect, test } from 'vitest'
import { verifyDeployment } from '../../cli/verify/run.ts'
import { parseConfig } from '../../src/core/config/parse.ts'
import { inGateway } from '../../src/features/in-gateway.ts'
import { verify } from '../../src/features/verify/index.ts'
import { rateLimiter } from '../../src/hosts/node/node.ts'
import { configOf, listen, type Options, useDatabase } from '../support/node-servers.ts'

const TOKEN = 'a-token-to-verify-with'
useDatabase()
beforeAll(() => void Object.assign(process.env, { SLUICE_VERIFY_TOKEN: TOKEN }))

async function findingsOf(policies: NonNullable<Options['policies']>) {
  const options = configOf({ policies, use: [verify()] })
  const limit = rateLimiter(options)
  const server = createServer(async (request, response) => {
    if (await limit(request, response)) response.end('ok')
  })
  return verifyDeployment({
    url: await listen(server),
    token: TOKEN,
    config: parseConfig(options, inGateway),
    maxWaitMs: 0,
  })
}

test.each([1, 19])(
  'A quota of %i is proven although another policy refuses first.',
  async (limit) => {
    const findings = await findingsOf([
      { name: 'slow', algorithm: 'gcra', limit: 2, window: '1m', key: 'global' },
      { name: 'login', algorithm: 'fixed-window', limit, window: '1h', match: { path: '/login' } },
    ])
    expect(findings.filter(({ status }) => status !== 'ok')).toEqual([])
  },
)
