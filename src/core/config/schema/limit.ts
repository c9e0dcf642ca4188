import {
  either,
  type Input,
  isObject,
  type Named,
  named,
  object,
  pattern,
  units,
} from './shapes.ts'

const claimFields = () => ({
  /** Name of the claim with the limit: a whole number of at least 1. Required. */
  claim: pattern('the name of a claim', /^\S+$/),
  /** The largest limit: a claim with a higher number has this limit. Required. */
  max: units,
  /** The limit without a valid claim in a verified token, at most `max`. A plan of the request comes first. Required. */
  otherwise: units,
})

/** A limit that a claim of the request's verified token sets. */
export interface ClaimLimit extends Input<ReturnType<typeof claimFields>>, Named {}

const byClaim = named<ClaimLimit>()(
  object(claimFields, ({ max, otherwise }, problem) => {
    if (max && otherwise && otherwise > max) problem(['otherwise'], `at most max, ${max}`)
  }),
)

/** The size of a quota. */
export const limit = either(isObject, units, byClaim)
