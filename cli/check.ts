/** `sluice check`: checks the configuration of the current folder. */
import { dirname, resolve } from 'node:path'
import type { Call } from './call.ts'
import { checkPolicies } from './check/policies.ts'
import { bindingChecks, type Check, type Details, runChecks } from './check/run.ts'
import { readOptions } from './options.ts'
import { CONFIG_FILE } from './project/load-config.ts'
import { wranglerFile } from './project/wrangler-config.ts'

const usage = (
  title: string,
) => `Checks a configuration before a deployment: errors in policies and settings that look like a
mistake, the bindings of the shield and of Durable Objects in the configuration of wrangler, and
the namespace.

  ${title} [options]

  --policies     check only the policies
  --config FILE  the configuration (default sluice.config.ts); wrangler's is in the same folder
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
  const wrangler = wranglerFile(dirname(resolve(options.config)))
  const details: Details = {}
  const checks: Check[] = [
    ['policies', () => checkPolicies(options.config, wrangler, details)],
    ...(options.policies ? [] : bindingChecks(options.config, wrangler, details)),
  ]
  if (!(await runChecks(checks, details))) process.exitCode = 1
}
