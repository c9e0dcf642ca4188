import { fnv1a } from './fnv.ts'

/**
 * A short stable hash, in base 36, of the settings that must not change under a stored state. All parts are ASCII. A configuration
 * with two equal tags is rejected when it is parsed, so 32 bits are enough.
 */
export const tagOf = (...parts: (string | number)[]): string =>
  fnv1a(JSON.stringify(parts)).toString(36)
