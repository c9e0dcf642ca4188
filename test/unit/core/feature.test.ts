import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Feature, stagesOf } from '../../../src/core/feature.ts'
import { jitter } from '../../../src/features/jitter/index.ts'
import { rateLimiter } from '../../../src/hosts/app/middleware.ts'

/** A feature with these stages. */
const featureWith = (name: string, stages: string[]): Feature => ({
  name,
  compile: () => Object.fromEntries(stages.map((stage) => [stage, []])),
})
const program = { config: {}, log() {} } as unknown as Parameters<typeof stagesOf>[0]
const single = ['told', 'layer', 'watch', 'observer', 'rules']
const shared = ['endpoints', 'handlers', 'lua']

test('Features compile together if and only if no two of them have one stage. Several may have endpoints, handlers and Lua.', () => {
  const stages = fc.subarray([...single, ...shared])
  fc.assert(
    fc.property(fc.array(stages, { maxLength: 4 }), (all) => {
      const features = all.map((own, index) => featureWith(`feature-${index}`, own))
      const own = all.flat().filter((stage) => !shared.includes(stage))
      const compile = () => stagesOf(program, features)
      if (new Set(own).size === own.length)
        expect(Object.keys(compile())).toEqual(expect.arrayContaining(own))
      else expect(compile).toThrow(/^use: expected feature-\d or feature-\d, and not both/)
    }),
  )
})

test('A stage that is undefined is none.', () => {
  const none: Feature = { name: 'none', compile: () => ({ told: undefined }) as object }
  expect(() => stagesOf(program, [none, featureWith('one', ['told']), none])).not.toThrow()
})

test('A second feature with the stage of jitter() does not switch it off without a word: the error names both.', () => {
  const mine = { name: 'mine', compile: () => ({ told: () => undefined }) }
  expect(() => rateLimiter({ policies: [], use: [jitter('10%'), mine] })).toThrow(
    'use: expected jitter or mine, and not both, got both. Each of them has the stage told, which a limiter has once.',
  )
})
