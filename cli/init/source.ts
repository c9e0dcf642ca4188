import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'

interface Lock {
  packages?: Record<string, { resolved?: string }>
}

/**
 * The tarball from which npm has installed this command, as `file:/…`; `undefined` if it came from a registry.
 * @param program the file of the command, `node_modules/sluice/dist/cli.js`
 */
export async function tarballOf(program: string): Promise<string | undefined> {
  const modules = resolve(program, '../../..')
  const text = await readFile(join(modules, '.package-lock.json'), 'utf8').catch(() => '{}')
  const { packages = {} } = JSON.parse(text) as Lock
  const resolved = packages['node_modules/sluice']?.resolved ?? ''
  if (!resolved.startsWith('file:')) return undefined
  return `file:${resolve(modules, '..', resolved.slice('file:'.length))}`
}
