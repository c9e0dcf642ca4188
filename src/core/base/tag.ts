import { fnv1a } from './fnv.ts'

/**
 * A short hash, in base 36, of the settings that a stored state depends on. A change of these settings starts a new state. All parts
 * are ASCII. 32 bits are enough, because the parser rejects a configuration with two equal tags.
 */
export const tagOf = (...parts: (string | number)[]): string =>
  fnv1a(JSON.stringify(parts)).toString(36)
