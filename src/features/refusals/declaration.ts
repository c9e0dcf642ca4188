import * as v from 'valibot'
import { isObject } from '../../core/base/json.ts'
import type { FeatureFields } from '../../core/config/feature.ts'
import { refusalFields } from '../../core/config/schema/refusal-fields.ts'

export const declaration: FeatureFields = {
  name: 'refusals',
  check({ refusal, policies }, problem) {
    const check = (own: unknown, ...owner: (string | number)[]) => {
      if (!isObject(own)) return
      for (const { path = [], message } of v.safeParse(refusalFields, own).issues ?? []) {
        const keys = path.map(({ key }) => key as string | number)
        problem([...owner, 'refusal', ...keys], message)
      }
    }
    check(refusal)
    for (const [index, policy] of policies.entries()) check(policy?.refusal, 'policies', index)
  },
}
