import { afterAll, beforeAll, expect, test } from 'vitest'
import { verifyDeployment } from '../../../cli/verify/run.ts'
import { parseConfig } from '../../../src/core/config/parse.ts'
import { inGateway } from '../../../src/features/in-gateway.ts'
import { startStack } from '../../support/stack.ts'

const TOKEN = 'a-token-to-verify-with'
const config = {
  policies: [
    { name: 'per-ip', limit: 10, window: '10s' as const },
    {
      name: 'login',
      algorithm: 'fixed-window' as const,
      limit: 5,
      window: '1m' as const,
      match: { path: '/login', method: 'POST' },
    },
  ],
}
let stack: Awaited<ReturnType<typeof startStack>>
beforeAll(async () => {
  stack = await startStack({ config, env: { SLUICE_VERIFY_TOKEN: TOKEN } })
})
afterAll(() => stack?.stop())

test('a healthy Worker has no problem', async () => {
  const findings = await verifyDeployment({
    url: stack.url,
    token: TOKEN,
    config: parseConfig({ deadline: '10s', ...config }, inGateway),
    maxWaitMs: 12_000,
  })
  expect(findings.filter(({ status }) => status !== 'ok')).toEqual([])
})
