/** `sluice check`: checks the configuration of the current folder. */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { staleness, usesBuilt } from './build.ts'
import type { Call } from './call.ts'
import { checkPolicies } from './check/policies.ts'
import { bindingChecks, type Check, type Details, runChecks } from './check/run.ts'
import { readOptions } from './options.ts'
import { hostOf } from './project/hosts.ts'
import { CONFIG_FILE } from './project/load-config.ts'
import { wranglerFor } from './project/root.ts'

const usage = (
  title: string,
) => `Checks a configuration before a deployment: errors in policies and settings that look like a
mistake, the bindings of the shield and of Durable Objects in the configuration of wrangler, and
the namespace. The configuration is judged as its host runs it: a gateway (createGateway), or the app
of the project that imports it (rateLimiter, createSluice, sluice/node, sluice/next).

  ${title} [options]

  --policies     check only the policies
  --config FILE  the configuration (default sluice.config.ts); wrangler's is in the same folder, or
                 above it in the project
  --help         show this text

Exits with 1 if a check fails.`

export async function main(args: string[], call: Call): Promise<void> {
  const options = readOptions(
    args,
    { policies: { type: 'boolean' }, config: { type: 'string', default: CONFIG_FILE } },
    usage(call.title),
    call,
  )
  if (!options) return
  const wrangler = wranglerFor(resolve(options.config))
  const host = await hostOf(options.config)
  const details: Details = {}
  const checks: Check[] = [
    ['policies', () => checkPolicies(options.config, wrangler, details, host)],
    ...(options.policies ? [] : bindingChecks(options.config, wrangler, details)),
    ...(!options.policies && usesBuilt(options.config, host)
      ? [['build', () => staleness(options.config, host)] satisfies Check]
      : []),
  ]
  if (!(await runChecks(checks, details))) process.exitCode = 1
  if (existsSync(options.config)) console.log(host.sentence)
}
