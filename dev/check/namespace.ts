/** Says which namespace a configuration has, and which environments of wrangler.toml share counters if it has none. */
import { readFile } from 'node:fs/promises'
import { parseConfig } from '../../src/config/parse.ts'

/**
 * @param options a configuration that parses
 * @param file of wrangler; it may be missing
 */
export async function describeNamespace(options: unknown, file: string): Promise<string> {
  const { namespace } = parseConfig(options)
  if (namespace) return namespace
  const toml = await readFile(file, 'utf8').catch(() => '')
  const names = [...toml.matchAll(/^\s*\[{1,2}env\.([\w-]+)/gm)].map(([, name]) => name)
  const environments = [...new Set(names)].join(', ')
  return environments
    ? `none; on the same database the environments of wrangler.toml (${environments}) count together: docs/reference/configuration.md#namespaces`
    : 'none'
}
