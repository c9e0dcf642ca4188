import * as v from 'valibot'
import { type KeySource, oneKey } from './key.ts'
import { either, isObject, object, pattern, whole } from './shapes.ts'

export type PlanOptions<Context = unknown> =
  | KeySource<Context>
  | { key: KeySource<Context>; table: string }

/** What tells the plan of a request. */
export const plan = either(
  (input) => isObject(input) && 'table' in input,
  v.pipe(
    oneKey,
    v.transform((key) => ({ key, table: undefined })),
  ),
  object({ key: oneKey, table: v.string('the name of a table') }),
)

export type PlanSource = v.InferOutput<typeof plan>

/** An object by names. Those that valibot leaves out of a record are a problem. */
const byName = <I, O>(
  expected: string,
  names: v.GenericSchema<string, string>,
  values: v.GenericSchema<I, O>,
) =>
  v.pipe(
    v.custom<Record<string, I>>(isObject, expected),
    v.check(
      (input) =>
        !['__proto__', 'prototype', 'constructor'].some((one) => Object.hasOwn(input, one)),
      'names other than __proto__, prototype and constructor',
    ),
    v.record(names, values),
  )

export const limits = byName(
  'an object like { free: 100, pro: 5000 }',
  pattern('a name of a plan', /^.{1,64}$/s),
  whole(1),
)

/** Values to look up, by table and name. */
export const tables = byName(
  'an object of tables',
  v.string(),
  byName('an object of texts', v.string(), v.string('a text')),
)
