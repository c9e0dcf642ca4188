import type { Config } from '../../src/core/config/parse.ts'
import { say } from '../paint.ts'
import type { LoadedHost } from '../project/hosts.ts'
import { describeNamespace } from './namespace.ts'
import { objectProblems } from './objects.ts'
import { shieldMismatches } from './shield.ts'

/** A check. It returns or throws the problem; `UNREAD` if it has read nothing. */
export type Check = [name: string, run: () => unknown]

const UNREAD = Symbol()

/** What became of a check. */
export interface CheckResult {
  name: string
  status: 'ok' | 'failed' | 'unread'
  /** The problem, or what else a check has to say. */
  text?: string | undefined
}

/** Additional information to print when a check succeeds, by the name of the check: a few words, and perhaps further lines. */
export type Details = Record<string, string>

/** A check of a configuration that its host can run. The check of the policies reports any other. */
export const ofValid =
  ({ load, parse }: LoadedHost, run: (config: Config) => unknown): Check[1] =>
  async () => {
    const config = await load()
      .then(parse)
      .catch(() => undefined)
    return config ? run(config) : UNREAD
  }

/**
 * The checks of a configuration together with the configuration of wrangler: the bindings of the shield and of Durable Objects, and the
 * namespace.
 */
export function bindingChecks(wrangler: string, host: LoadedHost, details: Details): Check[] {
  return [
    [
      'bindings',
      ofValid(host, async (config) => {
        const problems = [
          ...(await shieldMismatches(config, wrangler)),
          ...(await objectProblems(config, wrangler)),
        ]
        return problems.join('\n')
      }),
    ],
    [
      'namespace',
      ofValid(host, async (config) => {
        details.namespace = await describeNamespace(config, wrangler)
      }),
    ],
  ]
}

/** Runs checks and prints the result of each. Returns false if one fails. */
export async function runChecks(
  checks: Check[],
  details: Details,
  report: (result: CheckResult) => void = print,
): Promise<boolean> {
  let failed = 0
  for (const [name, check] of checks) {
    const problem = await Promise.resolve()
      .then(check)
      .catch((error) => `${error.name}: ${error.message}`)
    if (problem && problem !== UNREAD) failed += 1
    const status = problem === UNREAD ? 'unread' : problem ? 'failed' : 'ok'
    report({ name, status, text: status === 'failed' ? String(problem) : details[name] })
  }
  return failed === 0
}

function print({ name, status, text }: CheckResult) {
  if (status === 'failed') return say(`✗ ${name}\n${text}`)
  if (status === 'unread') return say(`– ${name} (not checked: the configuration does not load)`)
  say(`✓ ${name}${text?.replace(/^.*/, ' ($&)') ?? ''}`)
}
