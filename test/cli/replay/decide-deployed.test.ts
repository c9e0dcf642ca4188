import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createLineMatcher } from '../../../cli/replay/decide/matcher.ts'
import { fitsMemory } from '../../../cli/replay/decide/memory.ts'
import { openPrivateRedis, type PrivateRedis } from '../../../cli/replay/decide/private-redis.ts'
import { replayerOn } from '../../../cli/replay/decide/replayer.ts'
import { parseConfig } from '../../../src/core/config/parse.ts'
import { condition } from '../../../src/core/config/schema/condition.ts'
import { cost } from '../../../src/core/config/schema/cost.ts'
import { policy } from '../../../src/core/config/schema/policy.ts'
import { defaultFields } from '../../../src/features/defaults.ts'
import { TestClock } from '../../../src/testing/clock.ts'
import type { JsonConfig } from '../../../tools/any-config.ts'
import { distinct } from '../../support/features.ts'
import { useGateway } from '../../support/gateway.ts'
import { lawRuns, property } from '../../support/law.ts'
import { isLong } from '../../support/long.ts'
import { NOON } from '../../support/replay.ts'
import * as drawn from '../../support/replay-configs.ts'

class SetClock extends TestClock {
  at = NOON
  override now() {
    return this.at
  }
}
const clock = new SetClock()
const gateway = useGateway({ config: { policies: [] }, clock })

let redis: PrivateRedis
let origin: Server
beforeAll(async () => {
  redis = await openPrivateRedis()
  // It answers with the status that the log has, and with the shadow policies that refuse.
  origin = createServer((request, response) => {
    const shadow = request.headers['sluice-shadow'] ?? ''
    response.writeHead(Number(request.headers['x-status']), { 'x-origin': shadow }).end()
  })
  await new Promise<void>((resolve) => origin.listen(0, '127.0.0.1', resolve))
})
afterAll(async () => {
  origin.close()
  await redis.stop()
})

/** What the deployed gateway does with each request. */
async function deployed(options: JsonConfig, traffic: drawn.Sent[]) {
  const { port } = origin.address() as AddressInfo
  const isolate = gateway.start(
    { ...options, use: [distinct()] },
    { env: { ORIGIN: `http://127.0.0.1:${port}` } },
  )
  const answers: string[] = []
  for (const { time, url, method, headers, cf, status } of traffic) {
    clock.at = time
    const { 'cf-connecting-ip': ip = '', ...others } = headers
    const init = {
      method,
      cf,
      ip,
      headers: { ...others, host: new URL(url).host, 'x-status': `${status}` },
    }
    const response = await isolate.fetch(url, init)
    await response.arrayBuffer()
    await isolate.settled()
    const shadow = response.headers.get('x-origin')
    answers.push(shadow === null ? 'refused' : `admitted ${shadow.replaceAll('"', '')}`)
  }
  expect(isolate.events()).not.toContain('store-error')
  return answers
}

let runs = 0

property(
  'A replay decides each request as the deployed gateway does, in memory and in Redis, whatever a policy reads and the log holds.',
  fc.tuple(drawn.configs, drawn.facts, drawn.traffic),
  async ([options, facts, traffic]) => {
    const matcher = createLineMatcher(
      parseConfig({ ...options, ...drawn.plugins }, defaultFields),
      {
        facts,
      },
    )
    const left = new Set(matcher.notReplayed.map((one) => one.policy))
    const lines = traffic.map((sent) => drawn.lineOf(sent, facts))
    const replay = async (own?: PrivateRedis) => {
      const replayer = replayerOn(own, matcher, { wholeSeconds: false })
      const decided = await replayer.decide(lines)
      return decided.map(({ spread: { allowed, shadowRefusedBy } }) =>
        allowed ? `admitted ${shadowRefusedBy.join(', ')}` : 'refused',
      )
    }
    const exact = await replay(redis)
    if (fitsMemory(matcher.config)) expect(await replay()).toEqual(exact)
    runs += 1
    const { policies, tables, caseSensitivePaths } = options
    const listOf = (name: 'allow' | 'deny') =>
      [options[name] ?? []].flat().filter((_, index) => !left.has(`${name}[${index}]`))
    const config: JsonConfig = {
      namespace: `n${runs}`,
      // The report notes that leases may refuse a little earlier.
      policies: policies.filter(({ name }) => !left.has(name)).map(({ lease: _, ...one }) => one),
      allow: listOf('allow').filter((entry) => !('policies' in entry) || !left.has('p0')),
      deny: listOf('deny'),
      tables,
      caseSensitivePaths,
      // The cache may see a token that comes back sooner under another plan up to ten seconds late (guarantees.md, "Late changes").
      denialCache: !policies.some(({ plan }) => plan),
    }
    expect(exact).toEqual(await deployed(config, traffic))
  },
  isLong ? lawRuns : 40,
  1, // one clock
)

/** The names of the fields of a schema. */
const fieldsOf = (schema: unknown): string[] => {
  const { shape, pipe } = schema as { shape?: () => object; pipe?: unknown[] }
  if (!shape) return fieldsOf(pipe![0])
  const fields = shape()
  return Array.isArray(fields) ? fieldsOf(fields.at(-1)) : Object.keys(fields)
}

test('The law draws every field of a policy, of a condition and of a cost, and every part of a key.', () => {
  expect(Object.keys(drawn.policyFields).sort()).toEqual(fieldsOf(policy).sort())
  expect(Object.keys(drawn.costFields).sort()).toEqual(fieldsOf(cost).sort())
  const [texts] = [fc.sample(drawn.matches, { numRuns: 2000, seed: 1 }).flatMap(Object.keys)]
  expect([...new Set(texts)].sort()).toEqual(fieldsOf(condition).sort())
  let message = ''
  try {
    parseConfig(
      { policies: [{ name: 'p', limit: 1, window: '1s', key: '?' as 'ip' }] },
      defaultFields,
    )
  } catch (error) {
    ;({ message } = error as Error)
  }
  const parts = [...message.split(', got')[0]!.matchAll(/"([a-zA-Z0-9-]+:?)(?:<\w+>)?"/g)].map(
    ([, part]) => part,
  )
  const known = [...drawn.keySources, ...drawn.rareSources].map((one) =>
    typeof one === 'string' ? one.replace(/:.*/, ':') : typeof one,
  )
  expect(parts.length).toBeGreaterThan(10)
  for (const part of parts) expect(known).toContain(part)
})
