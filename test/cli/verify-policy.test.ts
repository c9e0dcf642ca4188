/** What `sluice verify` says of healthy apps whose policies are hard to prove. */

import { createServer } from 'node:http'
import { beforeAll, expect, test } from 'vitest'
import { verifyDeployment } from '../../cli/verify/run.ts'
import { parseConfig } from '../../src/core/config/parse.ts'
import type { Feature } from '../../src/core/feature.ts'
import { bodies } from '../../src/features/bodies/index.ts'
import { defaultFields } from '../../src/features/defaults.ts'
import { turns } from '../../src/features/turns/index.ts'
import { verify } from '../../src/features/verify/index.ts'
import { rateLimiter } from '../../src/hosts/node/node.ts'
import { distinct } from '../support/features.ts'
import { configOf, listen, type Options, useDatabase } from '../support/node-servers.ts'

const TOKEN = 'a-token-to-verify-with'
useDatabase()
beforeAll(() => void Object.assign(process.env, { SLUICE_VERIFY_TOKEN: TOKEN }))

async function findingsOf(policies: NonNullable<Options['policies']>, use: Feature[] = []) {
  const options = configOf({ policies, use: [verify(), ...use] })
  const limit = rateLimiter(options)
  const server = createServer(async (request, response) => {
    if (await limit(request, response)) response.end('ok')
  })
  return verifyDeployment({
    url: await listen(server),
    token: TOKEN,
    config: parseConfig(options, defaultFields),
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

test('A policy that lets requests wait is proven without a wait.', async () => {
  const begun = Date.now()
  const findings = await findingsOf(
    [{ name: 'burst', algorithm: 'gcra', limit: 5, window: '10s', key: 'global', wait: '20s' }],
    [turns()],
  )
  expect(findings.filter(({ status }) => status !== 'ok')).toEqual([])
  expect(Date.now() - begun).toBeLessThan(4_000)
})

test.each(['header:x-name', 'body:name'] as const)(
  'A policy that counts the different values of %s is proven with as many values as its limit.',
  async (part) => {
    const findings = await findingsOf(
      [
        {
          name: 'names',
          limit: 3,
          window: '1h',
          key: 'global',
          distinct: part,
          onMissingKey: 'refuse',
        },
      ],
      [distinct(), bodies()],
    )
    expect(findings.filter(({ status }) => status !== 'ok')).toEqual([])
    expect(findings[0]!.text).toContain(
      '3 of 4 requests with another value passed, the 4th was refused',
    )
  },
)
