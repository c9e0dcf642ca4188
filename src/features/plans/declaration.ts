import { isObject } from '../../core/base/json.ts'
import { checkPolicies, type FeatureFields } from '../../core/config/feature.ts'
import { tooLarge } from '../../core/config/schema/terms.ts'
import { fields, settings } from './fields.ts'

const DIGESTS = 'the SHA-256 of each API key in hex, as printed by: printf %s "$KEY" | sha256sum'

export const declaration: FeatureFields = {
  name: 'plans',
  fields,
  settings,
  check: ({ policies, tables }, problem) =>
    checkPolicies({ policies }, problem, ({ plan, limits = {}, algorithm, windowMs }, report) => {
      const sizes = Object.entries(limits)
      // A value of `limits` with a problem of its own is not an object.
      const written = plan?.limits
      if (isObject(written) && Object.keys(written).length === 0)
        report(['limits'], 'a limit for each plan')
      if (!plan && sizes.length > 0) {
        report(['plan'], 'the key part that holds the plan of a request, like "header:x-plan"')
      }
      for (const [name, size] of sizes) {
        const expected = algorithm && windowMs && tooLarge(size, algorithm, windowMs)
        if (expected) report(['limits', name], expected)
      }
      const table = plan?.table
      if (typeof table !== 'string' || tables === null) return
      if (!Object.hasOwn(Object(tables), table)) {
        report(['plan', 'table'], 'the name of a table in tables')
      } else if (plan!.key?.source === 'api-key') {
        const other = Object.keys(tables![table]!).findIndex((name) => !/^[\da-f]{64}$/i.test(name))
        if (other >= 0) problem(['tables', table], `${DIGESTS}; entry ${other + 1} is not a digest`)
      }
    }),
}
