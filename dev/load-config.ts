import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

/**
 * Loads the default export of a configuration file. The file runs in this process, with its environment.
 * @throws {ConfigError} when the file passes an invalid configuration to `defineConfig`
 */
export async function loadConfig(file: string): Promise<unknown> {
  const path = resolve(file)
  if (!existsSync(path)) throw new Error('the file does not exist')
  const { default: config } = await import(pathToFileURL(path).href)
  if (config === undefined) throw new Error('expected the configuration as the default export')
  return config
}
