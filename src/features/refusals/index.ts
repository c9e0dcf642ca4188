/** Responses of your own to refused requests. */
import type { Feature } from '../../core/feature.ts'
import { declaration } from './declaration.ts'
import { compile } from './stages.ts'

export type { RefusalOptions } from '../../core/config/schema/refusal-fields.ts'

/** Lets `refusal` of the configuration and of policies be an object with a status, bodies and headers. */
export const refusals = (): Feature => ({ ...declaration, compile })
