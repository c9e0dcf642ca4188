/** Checks that the configuration of wrangler has the binding of the shield, with the limit and period of the configuration. */
import { existsSync } from 'node:fs'
import { basename } from 'node:path'
import type { Config } from '../../src/core/config/parse.ts'
import { unbound } from '../project/root.ts'
import { readBindings } from '../project/wrangler-config.ts'

/**
 * The differences between the shield and its binding, one line each.
 * @param file the configuration of wrangler
 */
export async function shieldMismatches(
  { shield }: Pick<Config, 'shield'>,
  file: string,
): Promise<string[]> {
  if (!shield) return []
  if (!existsSync(file)) return unbound('shield.binding', file, shield.binding)
  const name = basename(file)
  const { ratelimits } = await readBindings(file)
  const found = ratelimits.find((one) => one.name === shield.binding)
  if (!found)
    return [
      `shield.binding: ${name} has no ${isToml(name) ? '[[ratelimits]]' : 'entry of ratelimits'} with name = "${shield.binding}"`,
    ]
  const { limit, period } = found.simple
  return [
    ...(limit === shield.limit
      ? []
      : [`shield.limit: ${shield.limit} here, but limit = ${limit} in ${name}`]),
    ...(period * 1000 === shield.periodMs
      ? []
      : [`shield.period: ${shield.periodMs / 1000} s here, but period = ${period} in ${name}`]),
  ]
}

const isToml = (name: string) => name.endsWith('.toml')
