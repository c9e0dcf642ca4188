/** Checks that wrangler.toml has the binding of the shield, with the limit and period of the configuration. */
import { parseConfig } from '../../src/config/parse.ts'
import { readBindings } from '../wrangler-toml.ts'

/**
 * The differences between the shield and its binding, one line each.
 * @param options a valid configuration
 * @param file the path of wrangler.toml
 */
export async function shieldMismatches(options: unknown, file: string): Promise<string[]> {
  const { shield } = parseConfig(options)
  if (!shield) return []
  const { ratelimits } = await readBindings(file)
  const found = ratelimits.find(({ name }) => name === shield.binding)
  if (!found)
    return [`shield.binding: wrangler.toml has no [[ratelimits]] with name = "${shield.binding}"`]
  const { limit, period } = found.simple
  return [
    ...(limit === shield.limit
      ? []
      : [`shield.limit: ${shield.limit} here, but limit = ${limit} in wrangler.toml`]),
    ...(period * 1000 === shield.periodMs
      ? []
      : [
          `shield.period: ${shield.periodMs / 1000} s here, but period = ${period} in wrangler.toml`,
        ]),
  ]
}
