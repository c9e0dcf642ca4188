/** Parses the documents of live policies. A built configuration loads it for its first document. */
import { type Config, parseConfig } from '../core/config/parse.ts'
import { defaultFields } from '../features/defaults.ts'
import { ofNext, ofNode } from '../hosts/node/lacks.ts'

const lacks = { node: [ofNode], next: ofNext }

/**
 * @param lacking the host, if it lacks something
 * @throws {ConfigError}
 * @internal
 */
export const parse = (options: object, lacking?: keyof typeof lacks): Config =>
  parseConfig(options, defaultFields, lacking ? lacks[lacking] : [])
