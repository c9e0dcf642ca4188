/** Memory of an isolate under a flood of random keys, with the largest configuration that the schema accepts. */

import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterEach, expect, test, vi } from 'vitest'
import { parseConfig } from '../../../../src/core/config/parse.ts'
import { decideEach } from '../../../../src/core/decide/decide.ts'
import { createEngine } from '../../../../src/core/decide/engine.ts'
import { featuresOf, stagesOf } from '../../../../src/core/feature.ts'
import type { Match } from '../../../../src/core/program/match.ts'
import { coreParts } from '../../../../src/features/core-parts.ts'
import { leases, slidingLog } from '../../../support/features.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void
afterEach(() => void vi.unstubAllGlobals())

function heapMiB(): number {
  for (let n = 0; n < 4; n++) collect()
  return process.memoryUsage().heapUsed / 1024 / 1024
}

/** Answers like the script. Refuses every request if `allowed` is 0. */
const answerAll = (allowed: 0 | 1) =>
  vi.stubGlobal('fetch', async (_: string, { body }: { body: string }) => {
    const now = Date.now()
    const fixed = allowed ? `+${now}:60000:1;` : `-${now}:60000:50;`
    const log = allowed ? '+49,0,60000,60000;' : '-0,60000,60000,60000;'
    // The reply to a request has a part for each limit, in order.
    const partsOf = (request: string) =>
      [...request.matchAll(/:(fixed|log),/g)].map(([, name]) => (name === 'log' ? log : fixed))
    const reply = ([, , count, ...rest]: (string | number)[]) => {
      const requests = rest.slice(Number(count) + 1).map(String)
      return { result: [now, ...requests.map((request) => partsOf(request).join(''))].join(' ') }
    }
    const command = JSON.parse(body)
    return Response.json(Array.isArray(command[0]) ? command.map(reply) : reply(command))
  })

const env = { UPSTASH_REDIS_REST_URL: 'http://127.0.0.1', UPSTASH_REDIS_REST_TOKEN: 'token' }

test.each([
  ['admitted', 1],
  ['refused', 0],
] as const)(
  '20,000 random keys with leases, all %s, take at most 24 MiB.',
  async (_, allowed) => {
    answerAll(allowed)
    const config = parseConfig({
      use: [leases(), slidingLog()],
      deadline: '10s',
      policies: [
        {
          name: 'leased',
          algorithm: 'fixed-window',
          limit: 50,
          window: '1d',
          lease: { max: 50, ttl: '1m' },
        },
        { name: 'log', algorithm: 'sliding-log', limit: 50, window: '1d' },
      ],
    })
    const log = () => {}
    const parts = createEngine(
      config,
      log,
      stagesOf({ config, log }, featuresOf(config, coreParts())),
    ).partsOf(env)
    const decide = async (key: string) => {
      const policies = config.policies.map(
        (policy): Match => ({ terms: policy, partitionKey: [['header:x', key]], cost: 1 }),
      )
      const [outcome] = await decideEach([{ matched: { policies } }], parts, {
        waitUntil: () => {},
      })
      expect(outcome!.decision.reason).toBe(allowed ? 'within-limit' : 'limited')
    }
    const flood = async (count: number) => {
      for (let n = 0; n < count; n += 100) {
        await Promise.all(Array.from({ length: 100 }, () => decide(`${Math.random()}`.repeat(5))))
      }
    }
    await flood(2_000) // compiled code and constants do not count
    const before = heapMiB()
    await flood(20_000)
    expect(heapMiB() - before).toBeLessThan(24)
  },
  120_000,
)
