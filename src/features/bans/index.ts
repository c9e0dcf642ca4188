/** Bans a key after too many refusals. */
import type { Feature } from '../../core/feature.ts'
import { declaration } from './declaration.ts'
import { compile } from './stages.ts'

export type { PenaltyOptions } from './fields.ts'

/** Lets policies have a `penalty`, also those of a live document. */
export const bans = (): Feature => ({ ...declaration, compile })
