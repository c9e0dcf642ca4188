import type { GuardedScript } from '../../base/several-stores.ts'
import { script } from '../../store/upstash/script-text.ts'
import { type Layouts, moveKey, nameOf, placesOf, subjectOf } from './places.ts'
import { guard, guardedSha } from './script-text.ts'

/** The script of an old shard. It refuses calls for keys that have moved. */
export function guardedScript(
  shard: string,
  layouts: Layouts,
  namespace: string | undefined,
): GuardedScript {
  const placeOf = placesOf(layouts)
  const [key, name] = [moveKey(namespace), nameOf(layouts)]
  return {
    script: script.replace('\n', () => `\n${guard}`),
    scriptSha: guardedSha,
    guard({ keys, args }) {
      const first = args[0]!.includes('idempotency') ? 1 : 0 // the idempotency key has no place
      const isMoving = keys.slice(first).some((one) => placeOf(subjectOf(one)).to !== shard)
      if (isMoving) keys.push(key)
      args.push(isMoving ? name : '')
    },
  }
}
