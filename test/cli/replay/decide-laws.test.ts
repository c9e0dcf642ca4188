import fc from 'fast-check'
import { afterAll, beforeAll, expect } from 'vitest'
import { createLineMatcher } from '../../../cli/replay/decide/matcher.ts'
import { fitsMemory } from '../../../cli/replay/decide/memory.ts'
import { openPrivateRedis, type PrivateRedis } from '../../../cli/replay/decide/private-redis.ts'
import type { LogLine } from '../../../cli/replay/line.ts'
import type { ConfigOptions } from '../../../src/core/config/options.ts'
import { parseConfig } from '../../../src/core/config/parse.ts'
import { defaultFields } from '../../../src/features/defaults.ts'
import { property } from '../../support/law.ts'
import { type ReplayOptions, replay } from '../../support/replay.ts'
import * as drawn from '../../support/replay-configs.ts'

let redis: PrivateRedis
beforeAll(async () => {
  redis = await openPrivateRedis()
})
afterAll(() => redis.stop())

const facts = new Set(drawn.allFacts)
const lines = drawn.traffic.map((all) => all.map((sent) => drawn.lineOf(sent, facts)))
const inSeconds = lines.map((lines) =>
  lines.map((line) => ({ ...line, time: line.time - (line.time % 1000) })),
)
const decide = (config: ConfigOptions, lines: LogLine[], options: ReplayOptions = {}) =>
  replay({ ...config, ...drawn.plugins }, lines, { facts, ...options })

property(
  'The memory and Redis give the same verdicts to each line of a log with whole seconds.',
  fc.tuple(drawn.configs, inSeconds),
  async ([config, lines]) => {
    const { config: left } = createLineMatcher(
      parseConfig({ ...config, ...drawn.plugins }, defaultFields),
      {
        facts,
      },
    )
    if (!fitsMemory(left)) return
    const options = { wholeSeconds: true, chunk: 7 }
    expect(await decide(config, lines, options)).toEqual(
      await decide(config, lines, { ...options, redis }),
    )
  },
)

property(
  'Redis gives the same verdicts whether it gets one line at a time or all at once.',
  fc.tuple(drawn.configs, lines),
  async ([config, lines]) => {
    expect(await decide(config, lines, { redis, chunk: 1 })).toEqual(
      await decide(config, lines, { redis }),
    )
  },
)

property(
  'A replay with one policy per address equals a replay that also reads the path.',
  fc.tuple(fc.integer({ min: 1, max: 4 }), lines),
  async ([limit, lines]) => {
    const policy = { name: 'p0', limit, window: '3s' } as const
    const byPath = { ...policy, match: { path: '/*' } }
    expect(await replay({ policies: [policy] }, lines)).toEqual(
      await replay({ policies: [byPath] }, lines),
    )
  },
)
