import type { Soon } from '../../core/base/when-known.ts'
import type { DecisionFact } from '../../core/decide/observer.ts'
import type { Match } from '../../core/program/match.ts'
import type { ObserveSettings } from './options.ts'

type PartitionKey = Match['partitionKey']

/** The label of a client in events and counts, by `observe.subjects`. Known at once if the isolate has hashed the key recently. */
export function labelOf(
  subjects: ObserveSettings['subjects'],
  key: PartitionKey,
  hash: DecisionFact['hash'],
): Soon<string | undefined> {
  if (subjects === 'none') return undefined
  return (subjects === 'plain' ? readable(key) : undefined) ?? hash(key)
}

/** A text such as `ip=203.0.113.7`. `undefined` if a value is missing, long or has unusual characters. */
function readable(key: PartitionKey): string | undefined {
  const isReadable = key.every(
    ([, value]) => value !== undefined && /^[\w.:/@-]{1,64}$/.test(value),
  )
  return isReadable ? key.map(([label, value]) => `${label}=${value}`).join(',') : undefined
}
