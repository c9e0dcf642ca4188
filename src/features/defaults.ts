/** The features that each host has by default: all that need neither parameters nor a secret. */
import type { FeatureFields } from '../core/config/feature.ts'

import type { Feature } from '../core/feature.ts'
import * as stages from './compile.ts'
import * as declarations from './declarations.ts'

/** What they add to configurations, without what they do. For the linter and the command line. */
export const defaultFields: readonly FeatureFields[] = Object.values(declarations)

const fields: Partial<Record<string, FeatureFields>> = declarations
const compilers: Partial<Record<string, Feature['compile']>> = stages

/** These features, and the parts of the core. */
export const defaults = (): Feature[] =>
  Object.keys({ ...declarations, ...stages }).map((name) => ({
    name,
    ...fields[name],
    compile: compilers[name] ?? (() => ({})),
  }))
