/** Adapts asks to the limits of the decision API, so that no client can avoid a decision with an unusual key or request. */
import type { RequestDescription } from '../api/schema.ts'
import type { KeyValues } from '../limits/door.ts'

const MAX_CHARACTERS = 1024
/** The maximum size of a request in a body, which may have 64 KiB. */
const MAX_BYTES = 65_000

/** Cuts long values; those with the same first 1024 characters share a quota. */
export const cut = (key: KeyValues): KeyValues =>
  Array.isArray(key) ? key.map((value) => (value === null ? null : cutOne(value))) : cutOne(key)
const cutOne = (value: string | number) => String(value).slice(0, MAX_CHARACTERS)

/** Omits the body of a described request if it is too long. */
export function described(request: RequestDescription): RequestDescription {
  const { body, omitted = [], ...rest } = request
  const isSent = body === undefined || sizeOf(request) <= MAX_BYTES
  return isSent ? request : { ...rest, omitted: [...omitted, 'body'] }
}

const sizeOf = (value: unknown) => new TextEncoder().encode(JSON.stringify(value)).length

/** The values of a key in a path. Other values than those of an ask are never equal, so they are not cut. */
export const keyPath = (key: KeyValues): string =>
  [key]
    .flat()
    .map((value) => encodeURIComponent(value ?? ''))
    .join(',')
