import fc from 'fast-check'
import { expect, test } from 'vitest'
import { LruCache } from '../../../../src/core/base/lru.ts'

test('The least recently used entry is evicted first.', () => {
  const evicted: number[] = []
  const cache = new LruCache<number>({ maxSize: 2, onEvict: (value) => evicted.push(value) })
  cache.set('a', 1)
  cache.set('b', 2)
  cache.get('a')
  cache.peek('b')
  cache.set('c', 3)
  expect(evicted).toEqual([2])
  expect(['a', 'b', 'c'].map((key) => cache.peek(key))).toEqual([1, undefined, 3])
})

test('A cache bounded by bytes evicts as many entries as a new entry needs.', () => {
  const cache = new LruCache<string>({ maxSize: 10, sizeOf: (key) => key.length })
  for (const key of ['aaa', 'bbb', 'ccc', 'dddddd']) cache.set(key, key)
  expect(cache.count).toBe(2)
  expect(cache.get('ccc')).toBe('ccc')
  cache.set('x'.repeat(11), 'too large')
  expect(cache.count).toBe(0)
})

test('The eviction callback is not called for a deleted, removed or replaced value.', () => {
  const evicted: number[] = []
  const cache = new LruCache<number>({ maxSize: 3, onEvict: (value) => evicted.push(value) })
  for (const value of [1, 2, 3]) cache.set(`${value}`, value)
  cache.delete('1')
  cache.set('2', 4)
  expect(cache.removeIf((key, value) => key === '2' && value === 4)).toEqual([4])
  expect(cache.count).toBe(1)
  expect(evicted).toEqual([])
})

test('A cache behaves like a map in order of use that is cut to its size.', () => {
  const step = fc.record({
    action: fc.constantFrom('get', 'peek', 'set', 'delete'),
    key: fc.constantFrom('a', 'bb', 'ccc', 'dddd', 'eeeee'),
    value: fc.nat(),
  })
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 60 }),
      fc.integer({ min: 1, max: 12 }),
      (steps, maxSize) => {
        const cache = new LruCache<number>({ maxSize, sizeOf: (key) => key.length })
        const model = new Map<string, number>()
        for (const { action, key, value } of steps) {
          const before = model.get(key)
          if (action === 'get' || action === 'peek') expect(cache[action](key)).toBe(before)
          if (action === 'delete') cache.delete(key)
          if (action === 'set') cache.set(key, value)
          if (action !== 'peek') model.delete(key)
          if (action === 'get' && before !== undefined) model.set(key, before)
          if (action === 'set') model.set(key, value)
          while ([...model.keys()].join('').length > maxSize) model.delete([...model.keys()][0]!)
          expect(cache.count).toBe(model.size)
        }
        for (const [key, value] of model) expect(cache.peek(key)).toBe(value)
      },
    ),
  )
})
