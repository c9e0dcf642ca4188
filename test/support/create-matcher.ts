import type { Log } from '../../src/core/base/log.ts'
import type { ConfigOptions } from '../../src/core/config/options.ts'
import { type Config, parseConfig } from '../../src/core/config/parse.ts'
import { featuresOf, stagesOf } from '../../src/core/feature.ts'
import { compileMatcher, type Matched, type Matcher } from '../../src/core/program/match.ts'
import { defaultFields, defaults } from '../../src/features/defaults.ts'
import { viewOnCloudflare } from './view-on-cloudflare.ts'

export interface Circumstances {
  /** Cloudflare's properties of the request. */
  cf?: Record<string, unknown>
  env?: Record<string, unknown>
  context?: unknown
}

/** The matcher of a parsed configuration, with all parts and features. */
export const matcherOf = (config: Config, log: Log = () => {}): Matcher =>
  compileMatcher(config, log, stagesOf({ config, log }, featuresOf(config, defaults())))

/** Compiles a configuration to a function that matches requests, without a Worker. Logged events go to `lines`. */
export function createMatcher(options: ConfigOptions, lines: string[] = []) {
  const config = parseConfig(options, defaultFields)
  const log = (event: string, code: string) => void lines.push(`${event} ${code}`)
  const match = matcherOf(config, log)
  return async (
    url: string,
    init: RequestInit = {},
    { cf, env = {}, context }: Circumstances = {},
  ): Promise<Matched> => {
    const request = new Request(new URL(url, 'https://www.example.com'), init)
    if (cf) Object.assign(request, { cf })
    return match(viewOnCloudflare(request, { env, context, waitUntil: () => {} }, config))
  }
}
