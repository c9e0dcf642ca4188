import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Recent } from '../../../../src/core/base/recent.ts'

test('It has the latest values of the last keys, as many as a generation.', () => {
  const uses = fc.array(fc.record({ key: fc.integer({ min: 0, max: 9 }), sets: fc.boolean() }))
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 4 }), uses, (max, steps) => {
      const recent = new Recent<number>(max)
      const values = new Map<string, number>()
      const order: string[] = []
      steps.forEach(({ key: number, sets }, step) => {
        const key = String(number)
        const found = recent.get(key)
        expect([undefined, values.get(key)]).toContain(found)
        if (order.slice(-max).includes(key)) expect(found).toBe(values.get(key))
        if (sets) {
          recent.set(key, step)
          values.set(key, step)
        }
        if (!sets && found === undefined) return
        if (order.includes(key)) order.splice(order.indexOf(key), 1)
        order.push(key)
      })
    }),
  )
})

test('A key that is not used for two generations is dropped.', () => {
  const recent = new Recent<number>(2)
  for (const key of ['a', 'b', 'c', 'd', 'e']) recent.set(key, 1)
  expect(['a', 'b', 'c', 'd', 'e'].map((key) => recent.get(key))).toEqual([
    undefined,
    undefined,
    1,
    1,
    1,
  ])
})
