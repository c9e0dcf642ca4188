import type { ConfigOptions } from '../../src/config/options.ts'
import { parseConfig } from '../../src/config/parse.ts'
import { compileMatcher, type Matched, type Matcher } from '../../src/match/match.ts'
import { viewOf } from '../../src/request/view.ts'

export interface Circumstances {
  /** What Cloudflare tells beside a request. */
  cf?: Record<string, unknown>
  env?: Record<string, unknown>
  context?: unknown
}

/** What a configuration makes of a request, without a Worker around it. What is logged is in `lines`. */
export function createMatcher(options: ConfigOptions, lines: string[] = []) {
  const config = parseConfig(options)
  const describe: Matcher = compileMatcher(
    config,
    (event, code) => void lines.push(`${event} ${code}`),
  )
  return (
    url: string,
    init: RequestInit = {},
    { cf, env = {}, context }: Circumstances = {},
  ): Promise<Matched> => {
    const request = new Request(new URL(url, 'https://www.example.com'), init)
    if (cf) Object.assign(request, { cf })
    return describe(viewOf(request, { env, context, waitUntil: () => {} }, config))
  }
}
