import * as v from 'valibot'
import { type Condition, conditionFields, conditionOf } from './condition.ts'
import { object, pattern, whole } from './shapes.ts'

/** The price of a request, parsed: the trusted proxy's word in `header`, else that of the first rule that matches, else `otherwise`. */
export interface Cost {
  header: string | undefined
  /** A field of the answer, in lower case. */
  response: string | undefined
  rules: { condition: Condition; cost: number }[]
  otherwise: number
}

const rules = v.array(
  v.pipe(
    object({ ...conditionFields, cost: whole(0) }),
    v.transform((rule) => ({ condition: conditionOf(rule), cost: rule.cost })),
  ),
  'a list of rules',
)

const fieldName = v.pipe(
  pattern('a field name like "Sluice-Cost"', /^[\w!#$%&'*+.^`|~-]+$/),
  v.toLowerCase(),
)

const fields = object({
  header: v.optional(fieldName),
  response: v.optional(fieldName),
  rules: v.optional(rules, []),
  otherwise: v.optional(whole(0), 1),
})

const none = { header: undefined, response: undefined }

export const cost = v.lazy((input): v.GenericSchema<unknown, Cost> => {
  if (Array.isArray(input)) {
    return v.pipe(
      rules,
      v.transform((rules) => ({ ...none, rules, otherwise: 1 })),
    )
  }
  if (typeof input === 'object' && input !== null) {
    return v.pipe(
      fields,
      v.transform((input) => ({ ...none, ...input })),
    )
  }
  return v.pipe(
    whole(0),
    v.transform((otherwise) => ({ ...none, rules: [], otherwise })),
  )
})
