/** Limits on the number of different values. */
import type { Feature } from '../../core/feature.ts'
import { declaration } from './declaration.ts'
import { compile } from './stages.ts'

/** Lets policies have `distinct`, also those of a live document. */
export const distinct = (): Feature => ({ ...declaration, compile })
