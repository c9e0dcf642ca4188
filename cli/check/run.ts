import { loadConfig } from '../project/load-config.ts'
import { describeNamespace } from './namespace.ts'
import { objectProblems } from './objects.ts'
import { shieldMismatches } from './shield.ts'

/** A check. It returns or throws the problem. */
export type Check = [name: string, run: () => unknown]

/** Additional information to print when a check succeeds, by the name of the check: a few words, and perhaps further lines. */
export type Details = Record<string, string>

/**
 * The checks of a configuration together with the configuration of wrangler: the bindings of the shield and of Durable Objects, and the
 * namespace. The check of the policies reports a configuration that does not load.
 */
export function bindingChecks(file: string, wrangler: string, details: Details): Check[] {
  const load = () => loadConfig(file).catch(() => undefined)
  return [
    [
      'bindings',
      async () => {
        const config = await load()
        if (!config) return
        const problems = [
          ...(await shieldMismatches(config, wrangler)),
          ...(await objectProblems(config, wrangler)),
        ]
        return problems.join('\n')
      },
    ],
    [
      'namespace',
      async () => {
        const config = await load()
        if (config) details.namespace = await describeNamespace(config, wrangler)
      },
    ],
  ]
}

/** Runs checks and prints the result of each. Returns false if one fails. */
export async function runChecks(checks: Check[], details: Details): Promise<boolean> {
  let failed = 0
  for (const [name, check] of checks) {
    const problem = await Promise.resolve()
      .then(check)
      .catch((error) => `${error.name}: ${error.message}`)
    if (problem) failed += 1
    const detail = details[name]?.replace(/^.*/, ' ($&)') ?? ''
    console.log(problem ? `✗ ${name}\n${problem}` : `✓ ${name}${detail}`)
  }
  return failed === 0
}
