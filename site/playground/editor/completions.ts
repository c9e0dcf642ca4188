/** Completes the fields and the values of a configuration from its schema. */
import { configWith } from '../../../src/core/config/schema/config.ts'
import { defaultFields } from '../../../src/features/defaults.ts'

/** A schema of valibot, as far as completion reads it. */
interface Node {
  type?: string
  wrapped?: Node
  item?: Node
  options?: (Node | string)[]
  entries?: Record<string, Node>
  pipe?: Node[]
  /** The shape of a schema of shapes.ts: entries, alternatives, or another schema. */
  shape?: () => Node | Node[] | Record<string, Node>
}

/** True for a schema, false for the entries of an object. */
const isNode = (one: unknown): one is Node =>
  typeof one === 'object' && one !== null && 'type' in one && typeof one.type === 'string'

/** The objects and the values that a schema accepts, without its layers. */
function* parts(schema: Node): Generator<Node | Record<string, Node>> {
  if (schema.shape) {
    const shape = schema.shape()
    if (Array.isArray(shape)) for (const one of shape) yield* parts(one)
    else if (isNode(shape)) yield* parts(shape)
    else yield shape as Record<string, Node>
    return
  }
  yield schema
  if (schema.wrapped) yield* parts(schema.wrapped)
  if (schema.item) yield* parts(schema.item)
  if (schema.entries) yield schema.entries
  for (const one of [...(schema.pipe ?? []), ...(schema.options ?? [])]) {
    if (one !== schema && isNode(one)) yield* parts(one)
  }
}

function fieldsIn(schema: Node): Record<string, Node> {
  const fields: Record<string, Node> = {}
  for (const part of parts(schema)) if (!isNode(part)) Object.assign(fields, part)
  return fields
}

const ofFeatures = (): Node[] =>
  defaultFields.map(({ fields }) => ({
    type: 'object',
    entries: (fields?.({}) ?? {}) as Record<string, Node>,
  }))

/** The schema at a path of field names; places in lists are left out. */
function schemaAt(path: readonly string[]): Node | undefined {
  let schema: Node | undefined = configWith() as unknown as Node
  for (const name of path) {
    const fields: Record<string, Node> = schema ? fieldsIn(schema) : {}
    schema = Object.hasOwn(fields, name) ? fields[name] : undefined
    // Features add fields to policies.
    if (name === 'policies' && schema)
      schema = { type: 'union', options: [schema, ...ofFeatures()] }
  }
  return schema
}

/** The names of the fields of the object at a path. */
export function fieldsAt(path: readonly string[]): string[] {
  const schema = schemaAt(path)
  return schema ? Object.keys(fieldsIn(schema)) : []
}

/** The values that a field may have, as they are written. */
export function valuesAt(path: readonly string[]): string[] {
  const schema = schemaAt(path)
  if (!schema) return []
  const values = new Set<string>()
  for (const part of parts(schema)) {
    if (!isNode(part)) continue
    if (part.type === 'boolean') for (const one of ['true', 'false']) values.add(one)
    for (const option of part.options ?? []) {
      if (typeof option === 'string') values.add(`'${option}'`)
    }
  }
  return [...values]
}
