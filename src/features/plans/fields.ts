import * as v from 'valibot'
import { isObject } from '../../core/base/json.ts'
import type { PlanSource } from '../../core/config/schema/key.ts'
import { pattern, units } from '../../core/config/schema/shapes.ts'

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

const limits = byName(
  'an object like { free: 100, pro: 5000 }',
  pattern('a plan name of 1 to 64 characters', /^.{1,64}$/s),
  units,
)

const tables = byName(
  'an object of tables',
  v.string(),
  byName('an object of strings', v.string(), v.string('a string')),
)

/** The digests that are names of a table, in the form of `api-key`: in lower case, without `sha256:`. */
const bareDigests = (table: Record<string, string>) =>
  Object.fromEntries(
    Object.entries(table).map(([name, plan]) => [name.toLowerCase().replace('sha256:', ''), plan]),
  )

export const fields = () => ({
  /** Size of the quota for each plan: `{ pro: 5000 }`, within the bounds of `limit`. Requests without a plan in this list get `limit`; if the plan cannot be read for certain, the smallest of them all. Requires `plan`. Defaults to none. */
  limits: v.optional(limits),
})

export function settings({
  policies,
}: {
  /** With problems it may be no list, and a plan may have no key. */
  policies?: readonly ({ plan?: Partial<PlanSource> | undefined } | undefined)[]
}) {
  const plans = Array.isArray(policies) ? policies.map((policy) => policy?.plan) : []
  const isByApiKey = (table: string) =>
    plans.some((plan) => plan?.table === table && plan.key?.source === 'api-key')
  const read = (all: v.InferOutput<typeof tables>) => {
    const entries = Object.entries(all)
    return Object.fromEntries(
      entries.map(([name, table]) => [name, isByApiKey(name) ? bareDigests(table) : table]),
    )
  }
  return {
    /** Lookup tables for the `plan` of policies, by name: `{ customers: { acme: 'pro' } }`. Defaults to none. */
    tables: v.optional(v.pipe(tables, v.transform(read))),
  }
}
