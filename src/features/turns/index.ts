import * as v from 'valibot'
import { parsedOptions } from '../../core/config/schema/checked.ts'
import { type Input, object, whole } from '../../core/config/schema/shapes.ts'
import type { Feature } from '../../core/feature.ts'
import { declaration } from './declaration.ts'
import { compileFor, MAX_WAITING } from './stages.ts'

const options = () => ({
  /** Most requests that an isolate holds at a time, 1 to 100,000; it refuses the rest. Each takes about 16 KiB in Node. Defaults to 1,000. */
  maxWaiting: v.optional(whole(1, 100_000), MAX_WAITING),
})
const schema = object(options)

export interface TurnsOptions extends Input<ReturnType<typeof options>> {}

/**
 * Bounds how many requests one isolate holds that wait (the field `wait` of their policies). Without it, its options have their defaults.
 * @throws {ConfigError} immediately, if an option is invalid
 * @example
 * rateLimiter({
 *   policies: [{ name: 'per-tenant', limit: 10, window: '1s', key: 'header:x-tenant', wait: '2s' }],
 *   use: [turns({ maxWaiting: 100 })],
 * })
 */
export function turns(options: TurnsOptions = {}): Feature {
  const { maxWaiting } = parsedOptions(schema, options, 'turns')
  return { ...declaration, compile: compileFor(maxWaiting) }
}
