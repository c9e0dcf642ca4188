import { toJsonSchemaDefs } from '@valibot/to-json-schema'
import type { GenericSchema } from 'valibot'
import * as api from '../../src/api/schema.ts'
import {
  decision,
  limitState,
  policyReport,
  problem,
  limitStatus,
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
    toJsonSchemaDefs(schemas, {
      target: 'draft-2020-12',
      typeMode: 'input',
      ignoreActions: ['check'],
      overrideRef: ({ referenceId }) => ref(referenceId as SchemaName).$ref,
    }),
  ) as Record<SchemaName, object>

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
