import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

/**
 * What a configuration file exports by default. Its variables are this process's.
 * @throws {ConfigError} where it hands `defineConfig` something wrong
 */
export async function loadConfig(file: string): Promise<unknown> {
  const path = resolve(file)
  if (!existsSync(path)) throw new Error('there is no such file')
  const { default: config } = await import(pathToFileURL(path).href)
  if (config === undefined) throw new Error('expected a default export: the configuration')
  return config
}
