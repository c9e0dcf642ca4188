/** The features that each host has by default: all that need neither parameters nor a secret. */
import type { FeatureFields } from '../core/config/feature.ts'
import type { Feature } from '../core/feature.ts'
import * as stages from './compile.ts'
import { coreParts } from './core-parts.ts'
import * as declarations from './declarations.ts'

/** What they add to configurations, without what they do. For the linter and the command line. */
export const defaultFields: readonly FeatureFields[] = Object.values(declarations)

export const defaults = (): Feature[] => {
  const compiles: Record<string, Feature['compile']> = { headerSets: () => ({}), ...stages }
  return [
    ...defaultFields.map((declared) => ({ ...declared, compile: compiles[declared.name]! })),
    ...coreParts(),
  ]
}
