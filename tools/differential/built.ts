/** Configurations as `npx sluice build` of this folder writes them. */
import { type Expression, expressionOf, fitsOf, neededBy } from '../../cli/build/module.ts'
import { hosts } from '../../cli/project/hosts.ts'
import type { ConfigOptions } from '../../src/core/config/options.ts'
import type { HostName } from './hosts.ts'

/** Who runs each host. */
const KIND: Record<HostName, keyof typeof hosts> = {
  ...{ app: 'app', hono: 'app', gateway: 'gateway', next: 'next' },
  ...{ http: 'node', express: 'node', fastify: 'node' },
}

// biome-ignore lint/suspicious/noExplicitAny: exports of any version
type Entry = any

/**
 * What the module of a configuration exports.
 * @param entry finds the exports of an entry of the package that runs it
 * @throws {ConfigError}
 */
export function builtConfig(
  host: HostName,
  options: ConfigOptions,
  entry: (name: string) => Entry,
): object {
  const config = hosts[KIND[host]].parse(options)
  const exported = entry('./built')
  const { text }: Expression = expressionOf(config, options)
  const evaluate = new Function('options', ...Object.keys(exported), `return ${text}`)
  return exported.built({
    config: evaluate(options, ...Object.values(exported)),
    features: neededBy(config, KIND[host] === 'gateway').map((name) => exported[name]),
    fits: fitsOf(options),
    ...(config.live && { live: { options, load: async () => entry('./built/parser') } }),
  })
}
