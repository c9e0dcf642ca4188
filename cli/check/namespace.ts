/** Describes the namespace of a configuration. Without one, names the environments of wrangler that may share counters. */
import { readFile } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { wranglerOf } from '../project/tools.ts'

/** @param file the configuration of wrangler, which may not exist */
export async function describeNamespace(
  { namespace }: { namespace?: string | undefined },
  file: string,
): Promise<string> {
  if (namespace) return namespace
  const environments = (await environmentsOf(file)).join(', ')
  return environments
    ? `none; the environments of ${basename(file)} (${environments}) share counters if they use the same database: npx sluice docs configuration#namespaces`
    : 'none'
}

async function environmentsOf(file: string): Promise<string[]> {
  const text = await readFile(file, 'utf8').catch(() => '')
  if (file.endsWith('.toml')) {
    const names = [...text.matchAll(/^\s*\[{1,2}env\.([\w-]+)/gm)].map(([, name]) => name!)
    return [...new Set(names)]
  }
  if (!text.includes('"env"')) return []
  const { experimental_readRawConfig: readRawConfig } = await wranglerOf(dirname(file))
  return Object.keys(readRawConfig({ config: file }).rawConfig.env ?? {})
}
