/** Operators set the limits of single keys. */
import type { Feature } from '../../core/feature.ts'
import { declaration } from './declaration.ts'
import { compile } from './stages.ts'

/** Lets policies have `overrides: true`, also those of a live document. */
export const overrides = (): Feature => ({ ...declaration, compile })
