/** The editor of the playground reads configurations without running them. */
import { typescriptLanguage } from '@codemirror/lang-javascript'
import { describe, expect, test } from 'vitest'
import { fieldsAt, valuesAt } from '../../site/playground/editor/completions.ts'
import { features } from '../../site/playground/editor/features.ts'
import { pathAt } from '../../site/playground/editor/path.ts'
import { placeOf, readConfig } from '../../site/playground/editor/read-config.ts'
import { defaultFields } from '../../src/features/defaults.ts'
import { fieldDocs } from '../../tools/site/field-docs.ts'

const read = (text: string) => {
  const { value, problems } = readConfig(text)
  return problems.length > 0 ? problems.map(({ message }) => message).join() : value
}

describe('what is read', () => {
  test.each([
    [`export default defineConfig({ a: 1 })`, { a: 1 }],
    [`app.use(rateLimiter({ policies: [] }))`, { policies: [] }],
    [
      `export default { a: -1, 'b c': [1_000, true, null, undefined] }`,
      { a: -1, 'b c': [1000, true, null, undefined] },
    ],
    [`const A = 5\ndefineConfig({ A, b: A * 60 + 1, c: 2 ** 3 })`, { A: 5, b: 301, c: 8 }],
    [`const all = { a: 1 }\ndefineConfig({ ...all, b: [...[1, 2], 3] })`, { a: 1, b: [1, 2, 3] }],
    [
      "defineConfig({ a: `x`, b: 'it\\'s', c: \"\\n\", d: 'say \"x\"' })",
      { a: 'x', b: "it's", c: '\n', d: 'say "x"' },
    ],
    [
      `defineConfig({ a: 'x' as const, b: {} satisfies object, /* c */ c: (1) })`,
      { a: 'x', b: {}, c: 1 },
    ],
  ])('%s', (text, value) => {
    expect(read(text)).toEqual(value)
  })

  test('A feature is called.', () => {
    expect(read(`defineConfig({ use: [leases(), observe({ to: 'log' })] })`)).toMatchObject({
      use: [{ name: 'leases' }, { name: 'observe' }],
    })
  })

  test('The playground has the features that a Worker has by default.', () => {
    const names = defaultFields.map(({ name }) => name)
    expect(Object.keys(features)).toEqual(expect.arrayContaining(names))
  })

  test('A field __proto__ is a field.', () => {
    const made = read(`defineConfig({ '__proto__': { a: 1 } })`) as object
    expect(Object.keys(made)).toEqual(['__proto__'])
    expect(Object.getPrototypeOf(made)).toBe(Object.prototype)
  })
})

describe('what is not read, and says why', () => {
  test.each([
    [`defineConfig({ key: (c) => c.user })`, 'The playground runs no functions'],
    [`defineConfig({ use: [jwt({})] })`, 'The playground has no jwt()'],
    [`defineConfig({ a: process.env.X })`, 'The playground reads values only'],
    [`defineConfig({ a: alert(1) })`, 'The playground has no alert()'],
    [`defineConfig({ a: constructor() })`, 'The playground has no constructor()'],
    [`defineConfig({ [x]: 1 })`, 'Write the name of the field as a text'],
    [`defineConfig({ a: X })`, 'The text has no constant X with a value'],
    [`const A = B, B = A\ndefineConfig({ a: A })`, 'The text has no constant'],
    [`defineConfig({ a: \`\${1}\` })`, 'The playground reads values only'],
    [`defineConfig({ use: [observe({ tt: 1 })] })`, 'observe.tt: expected one of the fields'],
    [`defineConfig({ a: })`, 'This is not the syntax of TypeScript'],
    [`let x = 1`, 'Write the configuration as an argument'],
    [`'${'x'.repeat(70_000)}'`, 'A configuration has at most 65536 characters'],
  ])('%s', (text, message) => {
    expect(read(text)).toContain(message)
  })
})

test('The place of a finding is its field, or the nearest object around it.', () => {
  const text = `defineConfig({ policies: [{ name: 'a', match: { path: '/x' } }] })`
  const config = readConfig(text)
  const placed = (path: string) => {
    const { from, to } = placeOf({ path }, config)
    return text.slice(from, to)
  }
  expect(placed('policies[0].match.path')).toBe(`path: '/x'`)
  expect(placed('policies[0].match.path[2]')).toBe(`path: '/x'`)
  expect(placed('policies[0].limit')).toBe(`{ name: 'a', match: { path: '/x' } }`)
  expect(placed('origin')).toBe(text.slice(13, -1))
})

describe('completion', () => {
  const place = (marked: string) => {
    const at = marked.indexOf('|')
    const text = marked.replace('|', '')
    return pathAt(typescriptLanguage.parser.parse(text), text, at)
  }

  test.each([
    [`defineConfig({ po| })`, { path: [], isValue: false }],
    [`defineConfig({ policies: [{ na| }] })`, { path: ['policies'], isValue: false }],
    [
      `defineConfig({ policies: [{ algorithm: 'f|' }] })`,
      { path: ['policies', 'algorithm'], isValue: true },
    ],
    [
      `defineConfig({ policies: [{ match: { pa| } }] })`,
      { path: ['policies', 'match'], isValue: false },
    ],
    [`defineConfig({ policies: [{ onSto|`, { path: ['policies'], isValue: false }],
    [`impo|rt`, undefined],
  ])('The cursor in %s', (marked, expected) => {
    expect(place(marked)).toEqual(expected)
  })

  test('The schema names the fields and the values.', () => {
    expect(fieldsAt([])).toContain('policies')
    expect(fieldsAt(['policies'])).toEqual(expect.arrayContaining(['name', 'limit', 'window']))
    expect(fieldsAt(['policies', 'match'])).toContain('path')
    expect(fieldsAt(['policies', 'nothing'])).toEqual([])
    expect(fieldsAt(['constructor'])).toEqual([])
    expect(valuesAt(['policies', 'algorithm'])).toContain(`'sliding-log'`)
    expect(valuesAt(['denialCache'])).toEqual(['true', 'false'])
  })

  test('Each field of a documented object has a text.', async () => {
    const docs = await fieldDocs()
    for (const path of ['', 'policies', 'policies.match', 'policies.penalty']) {
      const fields = fieldsAt(path ? path.split('.') : [])
      expect(Object.keys(docs[path]!)).toEqual(expect.arrayContaining(fields))
    }
    expect(docs.policies!.limit).toMatch(/Default: required/)
  })
})
