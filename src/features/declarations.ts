/** What each feature without parameters adds to configurations, by its name: its fields and checks. */
import type { FeatureFields } from '../core/config/feature.ts'
import { fields as bansFields } from './bans/fields.ts'
import { settings as headers } from './header-sets/fields.ts'
import { settings as liveSettings } from './live/fields.ts'
import { fields as overridesFields } from './overrides/fields.ts'
import { settings as shieldSettings } from './shield/fields.ts'

export const bans: FeatureFields = { name: 'bans', fields: bansFields }
export { declaration as concurrency } from './concurrency/declaration.ts'
export { declaration as distinct } from './distinct/declaration.ts'
export const headerSets: FeatureFields = { name: 'headerSets', settings: headers }
export { declaration as leases } from './leases/declaration.ts'
export const live: FeatureFields = { name: 'live', settings: liveSettings }
export const overrides: FeatureFields = { name: 'overrides', fields: overridesFields }
export { declaration as plans } from './plans/declaration.ts'
export { declaration as proxies } from './proxies/declaration.ts'
export { declaration as refusals } from './refusals/declaration.ts'
export const shield: FeatureFields = { name: 'shield', settings: shieldSettings }
export const slidingLog: FeatureFields = { name: 'slidingLog' }
export { declaration as turns } from './turns/declaration.ts'
