import { readFile } from 'node:fs/promises'
import { Ajv2020 } from 'ajv/dist/2020.js'
import type { SchemaName } from '../../tools/openapi/schemas.ts'

export const openapi = JSON.parse(
  await readFile(new URL('../../src/api/openapi.json', import.meta.url), 'utf8'),
)

const $defs = JSON.parse(
  JSON.stringify(openapi.components.schemas).replaceAll('#/components/schemas/', '#/$defs/'),
)

const ajv = new Ajv2020({ strict: true, strictTypes: false })
const checks = new Map<SchemaName, (value: unknown) => boolean>()

/** A check that a value is valid by a schema of the OpenAPI document. Ajv makes the check, independently of our code. */
export function byJsonSchema(name: SchemaName): (value: unknown) => boolean {
  const check = checks.get(name) ?? ajv.compile({ $defs, $ref: `#/$defs/${name}` })
  checks.set(name, check)
  return check
}
