/** `sluice build`: writes the configuration of the current folder as a module without the parser. */
import { existsSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { basename, dirname, join, relative, resolve } from 'node:path'
import type { ConfigOptions } from '../src/core/config/options.ts'
import { fitsOf, moduleOf, neededBy, type Source } from './build/module.ts'
import { partsOf } from './build/stats.ts'
import type { Call } from './call.ts'
import { checkPolicies } from './check/policies.ts'
import { runChecks } from './check/run.ts'
import { table } from './dev/banner.ts'
import { readOptions } from './options.ts'
import { type FoundHost, hostOf } from './project/hosts.ts'
import { CONFIG_FILE } from './project/load-config.ts'
import { wranglerFor } from './project/root.ts'

const usage = (
  title: string,
) => `Checks the configuration as sluice check does, and writes it as a module:
parsed, and with only the features and parts that its fields need. Import
rateLimiter, createSluice or createGateway, and the configuration, from that
module: a bundle with it has no parser, and starts faster.

  ${title} [options]

  --config FILE  the configuration (default sluice.config.ts)
  --out FILE     the module (default sluice.built.ts beside it)
  --check        write nothing: exit with 1 if the module is not that of the
                 configuration
  --stats        print what the Worker consists of, in KiB: minified and
                 compressed
  --help         show this text

Exits with 1 if the configuration has mistakes.`

/** The module of a configuration, beside it. */
export const builtFileOf = (config: string) => join(dirname(config), 'sluice.built.ts')

/** What the module of a configuration that is valid is written from. */
async function sourceOf(config: string, out: string, host: FoundHost): Promise<Source> {
  const options = (await host.load()) as ConfigOptions
  const parsed = host.parse(options)
  const path = relative(dirname(resolve(out)), resolve(config))
  const from = path.startsWith('.') ? path : `./${path}`
  return {
    ...{ config: parsed, options, from, needed: neededBy(parsed, host.hasGateway) },
    ...(host.hasRequests && { fits: fitsOf(options) }),
  }
}

/** True if a project has the module of a configuration, or imports it. */
export const usesBuilt = ({ missing, modules }: FoundHost): boolean =>
  missing !== undefined || modules.length > 0

/**
 * Why a module of a configuration is missing or stale; `undefined` for current ones, and for a project without any.
 * @param outs the modules. Defaults to those of the project
 */
export async function staleness(
  config: string,
  host: FoundHost,
  outs = host.modules,
): Promise<string | undefined> {
  const command = `Run: npx sluice build${config === CONFIG_FILE ? '' : ` --config ${config}`}`
  if (host.missing) return `${host.missing}. ${command}`
  for (const out of outs) {
    const path = relative(process.cwd(), resolve(out))
    const option = resolve(out) === resolve(builtFileOf(config)) ? '' : ` --out ${path}`
    if (!existsSync(out)) return `${basename(out)} does not exist. ${command}${option}`
    const text = moduleOf(await sourceOf(config, out, host))
    // Git may check a file out with the line ends of Windows.
    if ((await readFile(out, 'utf8')).replaceAll('\r\n', '\n') !== text)
      return `${basename(out)} is not the module of ${basename(config)} any more. ${command}${option}`
  }
  return undefined
}

/** Writes the module of a configuration that is valid. Returns what it is made of, and the names of its features. */
export async function writeBuilt(config: string, host: FoundHost, out = builtFileOf(config)) {
  const source = await sourceOf(config, out, host)
  const text = moduleOf(source)
  // An equal file keeps its time, so that a bundler that watches it does not start again.
  if ((await readFile(out, 'utf8').catch(() => '')) !== text) {
    await mkdir(dirname(out), { recursive: true })
    await writeFile(out, text)
  }
  return { source, needed: source.needed! }
}

export async function main(args: string[], call: Call): Promise<void> {
  const options = readOptions(
    args,
    {
      config: { type: 'string', default: CONFIG_FILE },
      out: { type: 'string' },
      check: { type: 'boolean' },
      stats: { type: 'boolean' },
    },
    usage(call.title),
    call,
  )
  if (!options) return
  const { config, out = builtFileOf(config) } = options
  const host = await hostOf(config, out)
  const wrangler = wranglerFor(resolve(config))
  const passed = await runChecks(
    [['policies', () => checkPolicies(config, wrangler, {}, host)]],
    {},
  )
  const stale = passed && options.check ? await staleness(config, host, [out]) : undefined
  if (stale) console.error(stale)
  if (!passed || stale) {
    process.exitCode = 1
    return
  }
  if (options.check) return
  const { needed, source } = await writeBuilt(config, host, out)
  console.log(`Wrote ${out}${needed.length > 0 ? ` with ${needed.join(', ')}` : ''}`)
  if (!options.stats) return
  const parts = await partsOf(source, resolve(out), wrangler, host.key)
  const rows = parts.map(([name, bytes]) => [name, (bytes / 1024).toFixed(1).padStart(5)])
  console.log(`\n${table([['part', 'KiB, gzip'], ...rows])}`)
}
