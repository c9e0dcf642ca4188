import { readFile } from 'node:fs/promises'
import { Validator } from '@seriousme/openapi-schema-validator'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { serialized } from '../../../tools/openapi/document.ts'
import { type SchemaName, schemas } from '../../../tools/openapi/schemas.ts'
import { byJsonSchema, openapi } from '../../support/json-schema.ts'

test('The file openapi.json equals the output of npm run openapi.', async () => {
  const file = new URL('../../../src/api/openapi.json', import.meta.url)
  expect(await readFile(file, 'utf8')).toBe(serialized())
})

test('The description is valid OpenAPI 3.1.', async () => {
  const validator = new Validator()
  expect(await validator.validate(structuredClone(openapi))).toEqual({ valid: true })
  expect(validator.version).toBe('3.1')
})

interface Content {
  schema: { $ref?: string; anyOf?: { $ref?: string }[] }
  example?: unknown
  examples?: Record<string, { value: unknown }>
}
interface Operation {
  operationId: string
  security?: object[]
  requestBody?: { content: Record<string, Content> }
  responses: Record<string, { $ref?: string; content?: Record<string, Content> }>
}
const operations = Object.values<Record<string, Operation>>(openapi.paths).flatMap((path) =>
  ['get', 'post', 'put', 'delete'].flatMap((method) => path[method] ?? []),
)

/** Every example of the description, with its operation and schema. */
const examples = operations.flatMap(({ operationId, requestBody, responses }) =>
  [requestBody, ...Object.values(responses)].flatMap((one) =>
    Object.values(one?.content ?? {}).flatMap(({ schema, example, examples = {} }) => {
      const name = (schema.$ref ?? schema.anyOf?.[0]?.$ref)?.split('/').at(-1) as SchemaName
      const values = [...(example ? [example] : []), ...Object.values(examples).map((e) => e.value)]
      return values.flat().map((value) => [operationId, name, value] as const)
    }),
  ),
)

describe('the examples of the description', () => {
  test('Every operation with a body has an example.', () => {
    const withBody = operations.filter(({ requestBody }) => requestBody)
    const names = new Set(examples.map(([operationId]) => operationId))
    expect(withBody.map(({ operationId }) => operationId).filter((id) => !names.has(id))).toEqual(
      [],
    )
  })

  test.each(examples)('The example of the operation %s is a valid %s.', (_, name, value) => {
    expect(byJsonSchema(name)(value)).toBe(true)
    const result = v.safeParse(schemas[name], value)
    expect(result.issues ?? []).toEqual([])
    // Answers have no fields outside of their schema.
    if (!['Ban', 'Override'].includes(name)) expect(result.output).toEqual(value)
  })
})

test('Every operation declares its security and, if it needs a token, the status 401.', () => {
  for (const { operationId, security, responses } of operations) {
    expect(security, operationId).toBeDefined()
    if (security!.length > 0) expect(Object.keys(responses), operationId).toContain('401')
  }
})
