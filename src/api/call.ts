import { checked, type Schema } from '../core/config/schema/checked.ts'
import { readJson } from './body.ts'
import { unprocessable } from './problems.ts'
import { MAX_PROBLEMS } from './schema.ts'

/** Reads the body of a call by a schema. Returns a problem if the body is invalid. */
export async function bodyOf<T>(request: Request, schema: Schema<T>): Promise<T | Response> {
  const read = await readJson(request)
  if (read instanceof Response) return read
  const { output, problems } = checked(schema, read.json, 'body', MAX_PROBLEMS)
  return problems ? unprocessable(problems) : output
}
