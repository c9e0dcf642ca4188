/** Limits on requests in flight. */
import type { Feature } from '../../core/feature.ts'
import { declaration } from './declaration.ts'
import { compile } from './stages.ts'

/** Lets policies have `algorithm: 'concurrency'`, also those of a live document. */
export const concurrency = (): Feature => ({ ...declaration, compile })
