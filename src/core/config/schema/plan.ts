import * as v from 'valibot'
import { type KeySource, oneKey } from './key.ts'
import { type AddProblem, anyText, either, isObject, object, record, whole } from './shapes.ts'

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
  object(() => ({ key: oneKey, table: anyText('the name of a table') })),
)

export type PlanSource = v.InferOutput<typeof plan>

/** Values by name, which `check` checks. Reports the names that JavaScript treats specially. */
const byName = <I, O>(
  expected: string,
  values: v.GenericSchema<I, O>,
  check?: (all: object, problem: AddProblem) => void,
) =>
  record(
    v.pipe(
      v.custom<Record<string, I>>(isObject, expected),
      v.check(
        (input) =>
          !['__proto__', 'prototype', 'constructor'].some((one) => Object.hasOwn(input, one)),
        'names other than __proto__, prototype and constructor',
      ),
    ),
    values,
    (_, problem, all) => check?.(all, problem),
  )

export const limits = byName(
  'an object like { free: 100, pro: 5000 }',
  whole(1),
  (all, problem) => {
    for (const name of Object.keys(all)) {
      if (!/^.{1,64}$/s.test(name)) problem([name], 'a plan name of 1 to 64 characters', true)
    }
  },
)

/** Lookup tables by name. */
export const tables = byName(
  'an object of tables',
  byName('an object of strings', anyText('a string')),
)
