import { toJsonSchema, toJsonSchemaDefs } from '@valibot/to-json-schema'
import { type GenericSchema, type ObjectEntries, strictObject, union } from 'valibot'
import {
  banPage,
  decision,
  limitState,
  limitStatus,
  overrideList,
  policyReport,
  problem,
  stats,
  storeReport,
  trial,
} from './answers.ts'
import * as bodies from './bodies.ts'

/** The named schemas of the description. */
export const schemas = {
  RequestDescription: bodies.requestDescription,
  KeyValues: bodies.keyValues,
  Ask: bodies.ask,
  Refund: bodies.refund,
  Settlement: bodies.settle,
  Target: bodies.target,
  Ban: bodies.ban,
  Override: bodies.override,
  Try: bodies.tryOut,
  LimitState: limitState,
  Decision: decision,
  LimitStatus: limitStatus,
  OverrideList: overrideList,
  BanPage: banPage,
  PolicyReport: policyReport,
  StoreReport: storeReport,
  Stats: stats,
  Trial: trial,
  Problem: problem,
} satisfies Record<string, GenericSchema>

export type SchemaName = keyof typeof schemas
export const ref = (name: SchemaName) => ({ $ref: `#/components/schemas/${name}` })

const about = {
  policy: 'The name of a policy. Send either policy and key, or limits, or request.',
  key: "The values of the policy's key, in the order of its parts.",
  limits: 'Several policies, each with its key. All are charged, or none.',
  plan: 'The plan of the client, if the policy has plans.',
  request: 'The request. All policies that apply to it are used.',
}
const target = {
  key: "The values of the policy's key. Send one of key, subject and request.",
  subject:
    'The subject of a client, as GET /stats reports it. Send one of key, subject and request.',
  plan: 'The plan of the client, if the policy has plans.',
  request: 'A request that the policy applies to. Send one of key, subject and request.',
}

/** The descriptions of body fields. They are not in the schemas, because the Worker loads those at runtime. */
const fields: Partial<Record<SchemaName, Record<string, string>>> = {
  RequestDescription: {
    method: 'The method. Defaults to GET.',
    url: 'The absolute http or https URL.',
    ip: "The client's address. Without it, the key part ip is missing.",
    headers: 'The header fields, up to 100.',
    country: "The client's country, as ISO 3166-1 alpha-2.",
    asn: "The number of the client's autonomous system.",
    colo: 'The IATA code of the data center.',
  },
  Ask: {
    ...about,
    cost: 'The units to charge. Defaults to the cost by the policy.',
    mode: 'take charges the cost, peek charges nothing. Defaults to take.',
    waitMs: 'The longest time for which the call may wait for its turn, in ms. Defaults to 500.',
  },
  Refund: {
    ...about,
    cost: 'The units to refund. Defaults to the cost by the policy.',
    decidedAt: 'decidedAt of the decision.',
    slot: 'slot of the decision.',
  },
  Settlement: {
    ...about,
    used: 'The units that each limit keeps. More than its charge are charged, and never refused. Defaults to the charge.',
    decision: 'The decision, as it was answered.',
  },
  Target: target,
  Ban: { ...target, for: 'The duration of the ban, such as 1h, or whole milliseconds.' },
  Override: {
    limit: 'The limit of the key, in units.',
    for: 'How long it is in force, such as 30d, or whole milliseconds. At most 10 years.',
  },
  Try: { request: 'The request to check.' },
}

/** Returns the schemas as JSON Schema 2020-12, which OpenAPI 3.1 uses. Omits checks by code, which JSON Schema cannot express. */
export const jsonSchemas = () => {
  const definitions = brief(
    toJsonSchemaDefs(schemas, {
      target: 'draft-2020-12',
      typeMode: 'input',
      overrideRef: ({ referenceId }) => ref(referenceId as SchemaName).$ref,
    }),
  ) as Record<SchemaName, object>
  for (const [name, descriptions] of Object.entries(fields)) {
    describeFields(definitions[name as SchemaName], descriptions)
  }
  return definitions
}

/** Adds descriptions to the properties of a schema and of its alternatives. */
function describeFields(
  schema: { anyOf?: object[]; properties?: Record<string, object> },
  descriptions: Record<string, string>,
) {
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    Object.assign(property, { description: descriptions[name] })
  }
  for (const alternative of schema.anyOf ?? []) describeFields(alternative, descriptions)
}

/** A schema of the configuration as JSON Schema. Checks by code are left out. */
export const jsonSchemaOf = (schema: GenericSchema) =>
  toJsonSchema(known(schema) as GenericSchema, { typeMode: 'input', errorMode: 'ignore' }) as object

const converted = new WeakMap<object, unknown>()

/** The standard schema of a shape of src/core/config/schema/shapes.ts: a schema, alternatives, or the fields of an object. */
function standard(shape: unknown): GenericSchema {
  if (Array.isArray(shape)) return union(shape)
  return 'kind' in Object(shape) ? (shape as GenericSchema) : strictObject(shape as ObjectEntries)
}

/** Replaces the schemas of src/core/config/schema/shapes.ts by standard schemas, which the converter knows. Keeps identity. */
function known(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || value instanceof RegExp) return value
  if (Array.isArray(value)) return value.map(known)
  if (!converted.has(value)) {
    const { shape, pipe } = value as { shape?: () => unknown; pipe?: { shape?: unknown }[] }
    // A pipe copies the properties of its first schema.
    const isOwn = shape && shape !== pipe?.[0]?.shape
    const fields = Object.entries(value).map(([name, field]) => [name, known(field)])
    converted.set(value, isOwn ? known(standard(shape())) : Object.fromEntries(fields))
  }
  return converted.get(value)
}

/** Removes keywords without effect: an empty `required`, and `minLength: 0`. */
function brief(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(brief)
  if (typeof schema !== 'object' || schema === null) return schema
  const hasEffect = ([name, value]: [string, unknown]) =>
    !(name === 'minLength' && value === 0) &&
    !(name === 'required' && Array.isArray(value) && value.length === 0)
  return Object.fromEntries(
    Object.entries(schema)
      .filter(hasEffect)
      .map(([name, value]) => [name, brief(value)]),
  )
}
