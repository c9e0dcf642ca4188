/** Limits by the plan of a request. */
import type { Feature } from '../../core/feature.ts'
import { declaration } from './declaration.ts'
import { compile } from './stages.ts'

/** Lets policies have a `plan` with `limits`, also those of a live document. */
export const plans = (): Feature => ({ ...declaration, compile })
