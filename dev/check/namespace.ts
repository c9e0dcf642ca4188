/** Describes the namespace of a configuration. Without one, names the environments of wrangler.toml that may share counters. */
import { readFile } from 'node:fs/promises'
import { parseConfig } from '../../src/config/parse.ts'

/**
 * @param options a valid configuration
 * @param file the path of wrangler.toml, which may not exist
 */
export async function describeNamespace(options: unknown, file: string): Promise<string> {
  const { namespace } = parseConfig(options)
  if (namespace) return namespace
  const toml = await readFile(file, 'utf8').catch(() => '')
  const names = [...toml.matchAll(/^\s*\[{1,2}env\.([\w-]+)/gm)].map(([, name]) => name)
  const environments = [...new Set(names)].join(', ')
  return environments
    ? `none; the environments of wrangler.toml (${environments}) share counters if they use the same database: docs/reference/configuration.md#namespaces`
    : 'none'
}
