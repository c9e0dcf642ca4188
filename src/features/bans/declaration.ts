import type { FeatureFields } from '../../core/config/feature.ts'
import { fields } from './fields.ts'

export const declaration: FeatureFields = {
  name: 'bans',
  fields,
  check({ policies }, problem) {
    // The script would mistake states with equal tags for each other. About one pair of names in four billion has equal tags.
    policies.forEach((policy, index) => {
      const { penalty, name } = policy ?? {}
      const other =
        penalty &&
        policies.find(
          (one, place) =>
            one && (one.tag === penalty.tag || (place < index && one.penalty?.tag === penalty.tag)),
        )
      if (!other || (other.name === name && other !== policy)) return
      problem(
        ['policies', index, 'name'],
        `a name whose hash differs from that of ${JSON.stringify(other.name)}`,
      )
    })
  },
}
