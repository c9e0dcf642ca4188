/** Every field of the configuration has one row in the reference, and a guide links to it. */
import * as v from 'valibot'
import { expect, test } from 'vitest'
import { configWith } from '../../src/core/config/schema/config.ts'
import { refusalFields } from '../../src/core/config/schema/refusal-fields.ts'
import { defaultFields } from '../../src/features/defaults.ts'
import { jwtOptions } from '../../src/features/jwt/options.ts'
import { expectation } from '../../src/lint/expect/options.ts'
import { jsonSchemaOf } from '../../tools/openapi/schemas.ts'
import { found, pageAt, pages } from '../support/pages.ts'

interface JsonSchema {
  properties?: Record<string, JsonSchema>
  anyOf?: JsonSchema[]
  items?: JsonSchema
}

/** The paths of all fields, such as `policies.penalty.after`. */
function fieldsOf(schema: JsonSchema, path: string[] = []): string[] {
  const own = Object.entries(schema.properties ?? {}).flatMap(([name, field]) => [
    [...path, name].join('.'),
    ...fieldsOf(field, [...path, name]),
  ])
  const others = [...(schema.anyOf ?? []), ...(schema.items ? [schema.items] : [])]
  return [...new Set([...own, ...others.flatMap((other) => fieldsOf(other, path))])]
}

// A rule of a cost is a condition with a price: its fields are those of `match`. Other entries have the fields of `refusal`, `jwt` and `expect`.
const all = [
  ...fieldsOf(jsonSchemaOf(configWith())),
  ...defaultFields.flatMap(({ fields, settings }) => [
    ...(fields ? fieldsOf(jsonSchemaOf(v.object(fields({}))), ['policies']) : []),
    ...(settings ? fieldsOf(jsonSchemaOf(v.object(settings({})))) : []),
  ]),
  ...fieldsOf(jsonSchemaOf(refusalFields), ['refusal']),
  ...fieldsOf(jsonSchemaOf(jwtOptions), ['jwt']),
  ...fieldsOf(jsonSchemaOf(expectation), ['expect']),
]
const fields = all.filter(
  (field) =>
    !field.startsWith('policies.reserve.match.') &&
    !field.startsWith('expect.request.') &&
    !/^policies\.cost\.(rules\.)?(host|path|method|header|country|ip|query|asn|verifiedBot|ja4|botScore(\.\w+)?|jwt|apiKey|not|cost)$/.test(
      field,
    ) &&
    field !== 'policies.cost.rules.body', // `cost.body` is another field
)

/** The anchor of a field's row: `policies.penalty.after` is `policy-penalty-after`. */
const anchorOf = (field: string) => field.replace(/^policies\./, 'policy.').replaceAll('.', '-')

const reference = ['configuration', 'policies']
  .map((name) => pageAt(`docs/reference/${name}.md`).text)
  .join('\n')
const guides = pages.filter(({ path }) => path.startsWith('docs/guides/'))
const linked = guides.flatMap(({ text }) =>
  found(text, /\]\(\.\.\/reference\/(?:configuration|policies)\.md#([\w-]+)\)/g),
)

test('The schema has the fields that this test looks for.', () => {
  expect(fields.length).toBeGreaterThan(80)
  expect(fields).toContain('policies.penalty.after')
})

test('Every field has exactly one row in the reference of the configuration.', () => {
  const rows = fields.map((field) => {
    const row = `^\\| <a id="${anchorOf(field)}"></a>\`${field.split('.').at(-1)}\``
    return [field, found(reference, new RegExp(row, 'gm')).length]
  })
  expect(rows.filter(([, count]) => count !== 1)).toEqual([])
})

test('At least one guide links to every field, or to the field that contains it.', () => {
  const parts = (anchor: string) =>
    anchor.split('-').map((_, index, all) => all.slice(0, index + 1).join('-'))
  const unlinked = fields.filter(
    (field) => !parts(anchorOf(field)).some((part) => linked.includes(part)),
  )
  expect(unlinked).toEqual([])
})
