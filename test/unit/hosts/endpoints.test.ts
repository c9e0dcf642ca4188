/** The endpoints of the decision API in an app. */
import { expect, test } from 'vitest'
import { endpoints } from '../../../src/features/endpoints/index.ts'
import { observe } from '../../../src/features/observe/index.ts'
import { createSluice } from '../../../src/hosts/app/sluice.ts'
import { configOf, type Options, servers, useDatabase } from '../../support/node-servers.ts'

useDatabase()

const OPERATE = 'a-token-of-operators'
const API = 'a-token-of-services-'
Object.assign(process.env, { SLUICE_OPERATE_TOKEN: OPERATE, SLUICE_API_TOKEN: API })
const policies: Options['policies'] = [
  { name: 'all', limit: 3, window: '1h', key: 'header:x-user' },
]
const authorization = (token: string) => ({ authorization: `Bearer ${token}` })

test.each(servers)('%s answers health, counts, decisions and operators.', async (_, start) => {
  const url = await start(configOf({ policies, use: [endpoints(), observe()] }))
  const health = await fetch(`${url}/_sluice/health`)
  expect([health.status, await health.json()]).toEqual([200, { status: 'ok' }])

  const passed = await fetch(`${url}/`, { headers: { 'x-user': 'alice' } })
  expect([passed.status, await passed.text()]).toEqual([200, 'ok'])

  const body = JSON.stringify({ policy: 'all', key: 'alice' })
  const init = { method: 'POST', headers: authorization(API), body }
  const decision = await fetch(`${url}/_sluice/v1/decide`, init)
  expect(await decision.json()).toMatchObject({ allowed: true, limits: [{ remaining: 1 }] })

  const peek = await fetch(`${url}/_sluice/v1/policies/all/peek`, {
    method: 'POST',
    headers: authorization(OPERATE),
    body: JSON.stringify({ key: 'alice' }),
  })
  expect(await peek.json()).toMatchObject({ limits: [{ remaining: 1 }] })
  const reset = await fetch(`${url}/_sluice/v1/policies/all/reset`, {
    method: 'POST',
    headers: { ...authorization(OPERATE), 'idempotency-key': 'once' },
    body: JSON.stringify({ key: 'alice' }),
  })
  expect(await reset.json()).toMatchObject({ limits: [{ remaining: 3 }] })

  const stats = await fetch(`${url}/_sluice/v1/stats`, { headers: authorization(OPERATE) })
  expect(await stats.json()).toMatchObject({ v: 1, circuit: 'closed' })
  const metrics = await fetch(`${url}/_sluice/v1/metrics`, { headers: authorization(OPERATE) })
  expect(await metrics.text()).toContain('sluice_decisions_total')
  const refused = await fetch(`${url}/_sluice/v1/stats`)
  expect(refused.status).toBe(401)
})

test.each(servers)('%s without endpoints() has none.', async (_, start) => {
  const url = await start(configOf({ policies, use: [observe()] }))
  for (const path of ['/_sluice/health', '/_sluice/v1/stats']) {
    const response = await fetch(url + path, { headers: authorization(OPERATE) })
    expect(await response.text()).toBe('ok')
  }
})

test('A path that is no endpoint reaches the app, and its policies apply.', async () => {
  const sluice = createSluice(configOf({ policies, use: [endpoints()] }))
  const request = new Request('http://app.test/_sluice/other', { headers: { 'x-user': 'bob' } })
  const { allowed, decision } = await sluice.check(request)
  expect([allowed, decision.limits.length]).toEqual([true, 1])
})

test('An endpoint whose token is not set does not exist.', async () => {
  const sluice = createSluice(configOf({ policies, use: [endpoints()] }))
  const { env } = process
  const withoutTokens = { ...env, SLUICE_OPERATE_TOKEN: '', SLUICE_API_TOKEN: '' }
  const request = new Request('http://app.test/_sluice/v1/policies', {
    headers: authorization(OPERATE),
  })
  const { allowed } = await sluice.check(request, { env: withoutTokens })
  expect(allowed).toBe(true)
  expect((await sluice.check(request, { env })).response?.status).toBe(200)
})

test('Other spellings of an endpoint do not answer.', async () => {
  const sluice = createSluice(configOf({ policies, use: [endpoints()] }))
  for (const path of ['//_sluice/health', '/_SLUICE/health', '/x/_sluice/health']) {
    const { allowed } = await sluice.check(new Request(`http://app.test${path}`))
    expect(allowed).toBe(true)
  }
})
