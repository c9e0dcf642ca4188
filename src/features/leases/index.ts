/** An isolate takes units of a busy quota in advance. */
import type { Feature } from '../../core/feature.ts'
import { declaration } from './declaration.ts'
import { compile } from './stages.ts'

/** Lets policies have a `lease`, also those of a live document. */
export const leases = (): Feature => ({ ...declaration, compile })
