/** Values that a function of another entry of the package makes. */
import * as v from 'valibot'
import type { FeatureDeclaration } from '../feature.ts'

/** Accepts the result of the function, by one of its members. */
export const madeBy = <T>(name: string, member: keyof T & string, orBy = '') =>
  v.custom<T>(
    (input) => /^(function|object)$/.test(typeof Object(input)[member]),
    `the result of ${name}() from 'sluice/${name}'${orBy}`,
  )

/** An entry of `use`. */
export const feature = v.custom<FeatureDeclaration>(
  (input) => typeof Object(input).compile === 'function',
  ({ input }) =>
    typeof input === 'function' && input.name
      ? `a feature: write ${input.name}()`
      : "a feature, such as observe() from 'sluice/features'",
)
