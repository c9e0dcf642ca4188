import * as v from 'valibot'
import { type KeySource, oneKey } from './key.ts'
import { either, isObject, object } from './shapes.ts'

export type PlanOptions<Context = unknown> =
  | KeySource<Context>
  | { key: KeySource<Context>; table: string }

/** How the plan of a request is found. */
export const plan = either(
  (input) => isObject(input) && 'table' in input,
  v.pipe(
    oneKey,
    v.transform((key) => ({ key, table: undefined })),
  ),
  object(() => ({ key: oneKey, table: v.string('the name of a table') })),
)

export type PlanSource = v.InferOutput<typeof plan>
