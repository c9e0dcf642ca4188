import { toJsonSchema, toJsonSchemaDefs } from '@valibot/to-json-schema'
import { type GenericSchema, getMetadata } from 'valibot'
import * as api from '../../src/api/schema.ts'
import {
  decision,
  limitState,
  limitStatus,
  policyReport,
  problem,
  storeReport,
  trial,
} from './answers.ts'

/** Every schema that the description names. */
export const schemas = {
  RequestDescription: api.requestDescription,
  KeyValues: api.keyValues,
  Ask: api.ask,
  Refund: api.refund,
  Target: api.target,
  Ban: api.banBody,
  Try: api.tryBody,
  LimitState: limitState,
  Decision: decision,
  LimitStatus: limitStatus,
  PolicyReport: policyReport,
  StoreReport: storeReport,
  Trial: trial,
  Problem: problem,
} satisfies Record<string, GenericSchema>

export type SchemaName = keyof typeof schemas
export const ref = (name: SchemaName) => ({ $ref: `#/components/schemas/${name}` })

/** As JSON Schema 2020-12, which is what OpenAPI 3.1 takes. Checks by code have no words there. */
export const jsonSchemas = () =>
  brief(
    toJsonSchemaDefs(known(schemas) as typeof schemas, {
      target: 'draft-2020-12',
      typeMode: 'input',
      ignoreActions: ['check'],
      overrideRef: ({ referenceId }) => ref(referenceId as SchemaName).$ref,
    }),
  ) as Record<SchemaName, object>

/** A schema of the configuration as JSON Schema. Checks by code are left out. */
export const jsonSchemaOf = (schema: GenericSchema) =>
  toJsonSchema(known(schema) as GenericSchema, { typeMode: 'input', errorMode: 'ignore' }) as object

const converted = new WeakMap<object, unknown>()

/** Schemas as the kinds that the converter knows: those of src/config/schema/shapes.ts name one in their metadata. The same schema stays the same. */
function known(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || value instanceof RegExp) return value
  if (Array.isArray(value)) return value.map(known)
  if (!converted.has(value)) {
    const { shape } = 'pipe' in value ? getMetadata(value as unknown as GenericSchema) : {}
    const fields = Object.entries(value).map(([name, field]) => [name, known(field)])
    converted.set(value, shape ? known(shape) : Object.fromEntries(fields))
  }
  return converted.get(value)
}

/** Without what says nothing: nothing required, a text of at least no characters. */
function brief(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(brief)
  if (typeof schema !== 'object' || schema === null) return schema
  const says = ([name, value]: [string, unknown]) =>
    !(name === 'minLength' && value === 0) &&
    !(name === 'required' && Array.isArray(value) && value.length === 0)
  return Object.fromEntries(
    Object.entries(schema)
      .filter(says)
      .map(([name, value]) => [name, brief(value)]),
  )
}
