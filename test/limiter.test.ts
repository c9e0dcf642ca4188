import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createLimiter, type LimiterParts } from '../src/limiter.ts'
import type { ConfigOptions } from '../src/options.ts'
import type { Seen } from '../src/seen.ts'
import { createLocalStore } from '../src/store/local.ts'
import { describer } from './describe.ts'

/** The time that a store is given for a request, in milliseconds. */
async function givenMs(config: ConfigOptions, init: RequestInit = {}): Promise<number> {
  const local = createLocalStore()
  let given = Number.NaN
  const parts: LimiterParts = {
    store: {
      decide(requests, options) {
        given = options!.deadlineMs!
        return local.decide(requests)
      },
      decideEach: local.decideEach,
    },
    local,
    nameSubject: async () => 'subject',
    onStoreError() {},
  }
  const describe = describer(config)
  await createLimiter(() => describe('/', init))({} as Seen, parts)
  return given
}

const quota = { name: 'a', limit: 5, window: '1m' } as const

test('a key function that takes long, as one may that reads what the client sends, leaves the store half of the deadline', async () => {
  const policies = [{ ...quota, deadline: 100, key: () => sleep(250, 'ann') }]
  expect(await givenMs({ policies })).toBe(50)
})

test('keys of an issuer that do not come take half of the shortest deadline, and the store has the rest', async () => {
  const silent = createServer(() => {})
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
  const { port } = silent.address() as AddressInfo
  const token = `${btoa('{"alg":"RS256"}')}.e30.AA`.replaceAll('=', '')
  const config: ConfigOptions = {
    deadline: '20s',
    jwt: { jwks: `http://127.0.0.1:${port}/` },
    policies: [{ ...quota, deadline: '2s', key: 'jwt:sub' }],
  }
  const start = performance.now()
  const given = await givenMs(config, { headers: { Authorization: `Bearer ${token}` } })
  silent.closeAllConnections()
  silent.close()
  const tookMs = performance.now() - start
  expect(tookMs).toBeGreaterThan(900) // it was waited for
  expect(given + tookMs).toBeLessThan(2100)
  expect(given).toBeGreaterThan(500)
  expect(performance.now() - start).toBeLessThan(5000)
})
