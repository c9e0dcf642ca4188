import * as v from 'valibot'
import { parsedOptions } from '../../core/config/schema/checked.ts'
import { duration, type Input, type Named, named, object } from '../../core/config/schema/shapes.ts'
import type { GraphqlCost } from './message.ts'

const KIB = 1024
const MOST = KIB * KIB

/** A size in bytes, or with a unit: `'64kb'`, `'1mb'`. */
export type Size = number | `${number}${'b' | 'kb' | 'mb'}`

function parseSize(input: unknown): number | undefined {
  const [, digits, unit = 'b'] = /^(\d{1,7})(b|kb|mb)?$/i.exec(String(input)) ?? []
  const bytes = Number(digits) * { b: 1, kb: KIB, mb: MOST }[unit.toLowerCase() as 'b']
  return bytes >= 1 && bytes <= MOST ? bytes : undefined
}

const size = v.pipe(
  v.custom<Size>(
    (input) => parseSize(input) !== undefined,
    'a size like "64kb" of at most "1mb", or bytes',
  ),
  v.transform((input) => parseSize(input)!),
)

const fields = () => ({
  /** Largest body that is read: a size such as `'64kb'`, or bytes; at most `'1mb'`. A larger body counts as unreadable. Defaults to `'64kb'`. */
  max: v.optional(size, 64 * KIB),
  /**
   * Largest JSON response whose usage is read (`cost.usage`), and largest event of a stream: a size of at most `'1mb'`. The usage of a
   * larger one is unknown. Each response in flight may use this much memory. Defaults to `'1mb'`.
   */
  maxResponse: v.optional(size, MOST),
  /** Longest wait for a body that arrives slowly: at most `'60s'`. After it the body counts as unreadable. Defaults to `'5s'`. */
  timeout: v.optional(v.pipe(duration, v.maxValue(60_000, 'a duration of at most "60s"')), 5_000),
  /** The cost of GraphQL documents, for `cost: { graphql: true }`: the result of `graphqlCost()` from `sluice/graphql`. Defaults to none. */
  graphql: v.optional(
    v.custom<GraphqlCost>(
      (input) => typeof input === 'function',
      "the result of graphqlCost() from 'sluice/graphql'",
    ),
  ),
})

/** Options of `bodies`. */
export interface BodiesOptions extends Input<ReturnType<typeof fields>>, Named {}

const schema = named<BodiesOptions>()(object(fields))

/** @throws {ConfigError} with every problem */
export const parseOptions = (options: BodiesOptions) => parsedOptions(schema, options, 'bodies')
