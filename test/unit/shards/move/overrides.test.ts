/** The limits that operators set for single keys, while the index of these limits moves. */
import { expect, test } from 'vitest'
import { parseConfig } from '../../../../src/config/parse.ts'
import { createParts } from '../../../../src/limiter/create.ts'
import { changeLimit, listLimits } from '../../../../src/limiter/overrides.ts'
import { overrides } from '../../../../src/overrides/index.ts'
import { shards } from '../../../../src/shards/index.ts'
import { moveKey, nameOf, placesOf, subjectOf } from '../../../../src/shards/move/places.ts'
import { depart } from '../../../../src/shards/move/transfer.ts'
import { NEW, OLD, useMovingShards } from '../../../support/moving.ts'

const { send, begin, url, wireTo } = useMovingShards()

test('Each limit is listed once, before, during and after the move of the list.', async () => {
  const env = Object.fromEntries(
    NEW.flatMap((name) => {
      const suffix = name.replace('-', '_').toUpperCase()
      return [
        [`UPSTASH_REDIS_REST_URL_${suffix}`, url()],
        [`UPSTASH_REDIS_REST_TOKEN_${suffix}`, name],
      ]
    }),
  )
  const layouts = { from: OLD, to: ['eu-3'] } // so that each key moves
  const config = parseConfig({
    deadline: '20s',
    overrides: overrides(),
    shards: shards(layouts.to, { moveFrom: layouts.from }),
    policies: [{ name: 'plan', limit: 9, window: '1h', key: 'header:x', overrides: true }],
  })
  const parts = createParts(config, () => {})({ ...env, SLUICE_SECRET: 'local' })
  const [policy] = config.policies
  const set = (key: string, units: number) =>
    changeLimit(
      { mode: 'override', units, forMs: 3_600_000 },
      { policy: policy!, partitionKey: [['header:x', key]], cost: 1 },
      parts,
      () => {},
    )
  const limits = async () =>
    (await listLimits(policy!, config, parts.nameSubject, env)).map(({ limit }) => limit).sort()

  await set('a', 1)
  await set('b', 2)
  expect(await limits()).toEqual([1, 2])

  await begin(layouts.from, layouts.to)
  const keys = (await Promise.all(OLD.map((name) => send(name, 'KEYS', '*')))) as string[][]
  for (const [n, name] of OLD.entries()) {
    const own = keys[n]!.filter((key) => key !== moveKey())
    expect(own.every((key) => placesOf(layouts)(subjectOf(key)).from === name)).toBe(true)
    const begun: [string, string] = [moveKey(), nameOf(layouts)]
    await depart(wireTo(name), begun, own, AbortSignal.timeout(10_000))
  }
  expect(await limits()).toEqual([1, 2])
  await set('c', 3)
  expect(await limits()).toEqual([1, 2, 3])
})
