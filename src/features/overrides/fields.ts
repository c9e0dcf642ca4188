import * as v from 'valibot'
import { flag } from '../../core/config/schema/shapes.ts'

export const fields = () => ({
  /** Lets operators set another limit for single keys (docs/reference/decision-api.md). Defaults to false. */
  overrides: v.optional(flag),
})
