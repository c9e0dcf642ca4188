/** Whether wrangler.toml has the binding that a shield names, and says of it what the configuration says. */
import { parseConfig } from '../../src/config/parse.ts'
import { readBindings } from '../wrangler-toml.ts'

/**
 * What differs, a line each.
 * @param options a configuration that parses
 * @param file of wrangler
 */
export async function shieldMismatches(options: unknown, file: string): Promise<string[]> {
  const { shield } = parseConfig(options)
  if (!shield) return []
  const { ratelimits } = await readBindings(file)
  const found = ratelimits.find(({ name }) => name === shield.binding)
  if (!found)
    return [`shield.binding: wrangler.toml has no [[ratelimits]] of the name ${shield.binding}`]
  const { limit, period } = found.simple
  return [
    ...(limit === shield.limit
      ? []
      : [`shield.limit: ${shield.limit}, and wrangler.toml says limit = ${limit}`]),
    ...(period * 1000 === shield.periodMs
      ? []
      : [`shield.period: ${shield.periodMs / 1000} s, and wrangler.toml says period = ${period}`]),
  ]
}
