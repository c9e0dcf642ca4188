/** `sluice/turns`: a request over the limit waits for its turn. */
import * as v from 'valibot'
import { ConfigError } from '../../core/base/errors.ts'
import { checked } from '../../core/config/schema/checked.ts'
import { type Input, object, whole } from '../../core/config/schema/shapes.ts'
import type { Feature } from '../../core/feature.ts'
import { waitingCalls } from './calls.ts'
import { declaration } from './declaration.ts'
import { createHold } from './hold.ts'
import { waitingObjects } from './objects.ts'
import { createRoom } from './room.ts'

export { WaitSubject } from './subject.ts'

const options = () => ({
  /**
   * The most requests that one isolate holds at a time, 1 to 100,000. It refuses the rest. A request that waits takes about 16 KiB in Node,
   * besides its own body. Defaults to 1,000.
   */
  maxWaiting: v.optional(whole(1, 100_000), 1_000),
})
const schema = object(options)

export interface TurnsOptions extends Input<ReturnType<typeof options>> {}

/**
 * Lets policies have a `wait`: a request over the limit takes its place in the future in the same call, and is held until then.
 * @throws {ConfigError} immediately, if an option is invalid
 * @example
 * rateLimiter({
 *   policies: [{ name: 'per-tenant', limit: 10, window: '1s', key: 'header:x-tenant', wait: '2s' }],
 *   use: [turns()],
 * })
 */
export function turns(options: TurnsOptions = {}): Feature {
  const { output, problems } = checked(schema, options, 'turns')
  if (problems) throw new ConfigError(problems)
  return {
    ...declaration,
    compile({ config }) {
      const room = createRoom(output.maxWaiting)
      const hold = createHold(room)
      return config.store?.own
        ? { hold, wrap: (store) => waitingObjects(store, room) }
        : { hold, calls: waitingCalls(room) }
    },
  }
}
