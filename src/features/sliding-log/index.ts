/** The algorithm that stores the time of every unit. */
import type { Feature } from '../../core/feature.ts'
import { declaration } from './declaration.ts'
import { compile } from './stages.ts'

/** Lets policies have `algorithm: 'sliding-log'`, also those of a live document. */
export const slidingLog = (): Feature => ({ ...declaration, compile })
