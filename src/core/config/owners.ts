/** The fields that belong to features: the core knows their names and, as types only, their values. The schemas are with the features. */
import type * as v from 'valibot'
import type { fields as bans } from '../../features/bans/fields.ts'
import type { fields as leases } from '../../features/leases/fields.ts'
import type { settings as live } from '../../features/live/fields.ts'
import type { fields as overrides } from '../../features/overrides/fields.ts'
import type { fields as plans, settings as plansSettings } from '../../features/plans/fields.ts'
import type { settings as shield } from '../../features/shield/fields.ts'
import type { fields as turns } from '../../features/turns/fields.ts'

/** The fields of a policy that features add. */
export type OwnedFields = ReturnType<typeof bans> &
  ReturnType<typeof leases> &
  ReturnType<typeof overrides> &
  ReturnType<typeof plans> &
  ReturnType<typeof turns>

/** The feature that each of these fields belongs to. */
export const owners: Readonly<Record<keyof OwnedFields, string>> = {
  penalty: 'bans',
  lease: 'leases',
  overrides: 'overrides',
  limits: 'plans',
  wait: 'turns',
}

/** The fields of the configuration that features add. */
export type OwnedSettings<Context> = ReturnType<typeof live> &
  ReturnType<typeof plansSettings> &
  ReturnType<typeof shield<Context>>

export const settingOwners: Readonly<Record<keyof OwnedSettings<unknown>, string>> = {
  live: 'live',
  tables: 'plans',
  shield: 'shield',
}

/** Fields that take any value. The feature checks it. */
export const opaque = <E extends v.ObjectEntries>(
  schema: v.GenericSchema,
  names: Readonly<Record<keyof E, string>>,
) => Object.fromEntries(Object.keys(names).map((name) => [name, schema])) as unknown as E
