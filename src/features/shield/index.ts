/** Cloudflare's rate limit binding in front of the store. */
import type { Feature } from '../../core/feature.ts'
import { declaration } from './declaration.ts'
import { compile } from './stages.ts'

/** Lets a configuration have a `shield`. */
export const shield = (): Feature => ({ ...declaration, compile })
