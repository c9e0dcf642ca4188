/** The values of `headers` that headerSets adds. */
import * as v from 'valibot'
import type { FieldSet } from '../../core/base/decision.ts'
import { isObject } from '../../core/base/json.ts'
import { either, object, oneOf, pattern } from '../../core/config/schema/shapes.ts'
import { setOf } from '../../core/respond/ratelimit-fields/sets.ts'
import { headerSet, sets } from './sets.ts'

type Name = 'draft-11' | keyof typeof sets
const names: Name[] = ['draft-11', ...(Object.keys(sets) as (keyof typeof sets)[])]

const set = either(
  isObject,
  v.pipe(
    v.picklist(
      names,
      `one of ${names.join(', ')}, an object with prefix and reset, or "off" outside of a list`,
    ),
    v.transform((name) => (name === 'draft-11' ? name : headerSet(name))),
  ),
  v.pipe(
    object(() => ({
      prefix: pattern('the start of a header name like "X-RateLimit-"', /^[A-Za-z][\w-]{0,63}$/),
      reset: oneOf('epoch', 'delta', 'iso'),
    })),
    v.transform((written) => headerSet(written)),
  ),
)

export const settings = () => ({
  headers: v.pipe(
    v.array(set),
    v.check((all: ('draft-11' | FieldSet)[]) => {
      const written = all.flatMap((one) => setOf(one).names).map((name) => name.toLowerCase())
      return new Set(written).size === written.length
    }, 'sets that have no field in common'),
  ),
})
