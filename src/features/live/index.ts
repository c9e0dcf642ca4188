/** Policies from a document in Redis or KV, without a deployment. */
import type { Feature } from '../../core/feature.ts'
import { declaration } from './declaration.ts'
import { compile } from './stages.ts'

/** Lets a configuration have the field `live`. */
export const live = (): Feature => ({ ...declaration, compile })
