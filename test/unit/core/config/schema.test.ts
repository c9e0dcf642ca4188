import { expect, test } from 'vitest'
import * as v from '../../../../src/core/config/schema/schema.ts'
import { object, whole } from '../../../../src/core/config/schema/shapes.ts'

const messages = (schema: v.GenericSchema, input: unknown) =>
  v.safeParse(schema, input).issues?.map(({ message }) => message)

const range = object(
  () => ({ low: whole(0), high: whole(0) }),
  ({ low = 0, high = 0 }, problem) => {
    if (low > high) problem(['high'], 'at least low')
  },
)
const ranges = v.pipe(v.array(range), v.maxLength<{ low: number; high: number }[]>(1, 'one range'))

test('A list with too many items reports their relations and its length together.', () => {
  const wrong = { low: 2, high: 1 }
  expect(messages(ranges, [wrong, wrong])).toEqual(['at least low', 'at least low', 'one range'])
})

test('A list with an item of another type reports only the item, since a transformation could not read it.', () => {
  const first = v.pipe(
    ranges,
    v.transform((all) => all[0]!.low),
  )
  expect(messages(first, ['', ''])).toEqual(['an object', 'an object'])
  expect(v.safeParse(first, [{ low: 1, high: 2 }]).output).toBe(1)
})

test('A record has no names of prototypes.', () => {
  const input = JSON.parse('{"__proto__":"a","constructor":"b","prototype":"c","d":"e"}')
  expect(v.safeParse(v.record(v.string(), v.string()), input).output).toEqual({ d: 'e' })
})

test('A problem of a name and one of its value are two problems.', () => {
  const upper = v.custom<string>((name) => name === 'A', 'the name A')
  const { issues } = v.safeParse(v.record(upper, v.string('a text')), { b: 1 })
  expect(issues).toEqual([
    { message: 'the name A', path: [{ key: 'b', origin: 'key' }] },
    { message: 'a text', path: [{ key: 'b', origin: 'value' }] },
  ])
})

test('A schema with one message reports one problem, and the message of a part takes precedence.', () => {
  const even = v.pipe(
    v.number(),
    v.integer(),
    v.check((value: number) => value % 2 === 0, 'an even number'),
  )
  const schema = v.config(even, { message: 'a number', abortPipeEarly: true })
  expect(messages(schema, 0.5)).toEqual(['a number'])
  expect(messages(schema, 3)).toEqual(['an even number'])
})

test('parse throws the first problem.', () => {
  expect(v.parse(whole(1), 2)).toBe(2)
  expect(() => v.parse(whole(1), 0)).toThrow('a whole number of at least 1')
})
