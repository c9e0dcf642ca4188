import * as v from 'valibot'
import { type KeySource, oneKey } from './key.ts'
import { either, isObject, object, pattern, whole } from './shapes.ts'

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

/** An object by names. Reports the names that valibot would silently drop from a record. */
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
  pattern('a plan name of 1 to 64 characters', /^.{1,64}$/s),
  whole(1),
)

/** Lookup tables by name. */
export const tables = byName(
  'an object of tables',
  v.string(),
  byName('an object of strings', v.string(), v.string('a string')),
)
