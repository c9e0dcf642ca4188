import { readFile } from 'node:fs/promises'

interface PackageJson {
  name: string
  version: string
  exports: Record<string, string | { types: string; default: string }>
}

/** package.json of the package. */
export const readManifest = async (): Promise<PackageJson> =>
  JSON.parse(await readFile(new URL('../../package.json', import.meta.url), 'utf8'))

/** The import specifiers of the package and the names of their files in dist: `sluice/client` is `client`. */
export async function readEntries(): Promise<Map<string, string>> {
  const { name, exports } = await readManifest()
  const entries = new Map<string, string>()
  for (const [subpath, target] of Object.entries(exports)) {
    if (typeof target === 'string') continue // package.json
    entries.set(name + subpath.slice(1), /^\.\/dist\/(.+)\.js$/.exec(target.default)![1]!)
  }
  return entries
}
