import * as v from 'valibot'
import { duration } from '../../core/config/schema/shapes.ts'

/** A proxy in front of the limiter ends a request that takes much longer. */
const MAX_WAIT_MS = 60_000

export const fields = ({ mode }: { mode?: string }) => ({
  /**
   * Lets a request over the limit wait until it has room, for at most so long: a duration of at most `'60s'`. A request whose turn is later is
   * refused at once. The shortest `wait` of the policies that apply counts. A shadow policy holds nothing. Cannot be combined with
   * `'concurrency'`, `distinct` or `lease`. Defaults to refusing at once.
   */
  wait: v.optional(
    v.pipe(
      duration,
      v.maxValue(MAX_WAIT_MS, 'a duration of at most 60s'),
      v.transform((ms): number | undefined => (mode === 'shadow' ? undefined : ms)),
    ),
  ),
})
