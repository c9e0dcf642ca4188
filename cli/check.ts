/** `sluice check`: checks the configuration of the current folder. */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { staleness, usesBuilt } from './build.ts'
import type { Call } from './call.ts'
import { checkPolicies, type PlacedFinding } from './check/policies.ts'
import {
  bindingChecks,
  type Check,
  type CheckResult,
  type Details,
  ofValid,
  runChecks,
} from './check/run.ts'
import { readOptions, UsageError } from './options.ts'
import { hostOf } from './project/hosts.ts'
import { CONFIG_FILE } from './project/load-config.ts'
import { wranglerFor } from './project/root.ts'

const usage = (
  title: string,
) => `Checks a configuration before a deployment: errors in policies and settings that
look like a mistake, the bindings of the shield and of Durable Objects in the
configuration of wrangler, and the namespace. The configuration is judged as its
host runs it: a gateway (createGateway), or the app of the project that imports
it (rateLimiter, createSluice, sluice/node, sluice/next).

  ${title} [options]

  --policies     check only the policies
  --json         print JSON
  --format NAME  text, json, or github: each finding also as an annotation
  --config FILE  the configuration (default sluice.config.ts); wrangler's is in
                 the same folder, or above it in the project
  --help         show this text

Exits with 1 if a check fails.`

export async function main(args: string[], call: Call): Promise<void> {
  const options = readOptions(
    args,
    {
      policies: { type: 'boolean' },
      json: { type: 'boolean' },
      format: { type: 'string', default: 'text' },
      config: { type: 'string', default: CONFIG_FILE },
    },
    usage(call.title),
    call,
  )
  if (!options) return
  const format = options.json ? 'json' : options.format
  if (!['text', 'json', 'github'].includes(format))
    throw new UsageError(`--format: expected text, json or github, got ${JSON.stringify(format)}`)
  const wrangler = wranglerFor(resolve(options.config))
  const host = await hostOf(options.config)
  const details: Details = {}
  const findings: PlacedFinding[] = []
  const results: CheckResult[] = []
  const checks: Check[] = [
    ['policies', () => checkPolicies(options.config, wrangler, details, host, findings)],
    ...(options.policies ? [] : bindingChecks(wrangler, host, details)),
    ...(!options.policies && usesBuilt(host)
      ? [['build', ofValid(host, () => staleness(options.config, host))] as Check]
      : []),
  ]
  const isJson = format === 'json'
  const passes = await runChecks(
    checks,
    details,
    isJson
      ? (one) => results.push({ ...one, text: one.text && stripVTControlCharacters(one.text) })
      : undefined,
  )
  if (!passes) process.exitCode = 1
  if (isJson)
    return console.log(JSON.stringify({ v: 1, passes, checks: results, findings }, null, 2))
  if (existsSync(options.config)) console.log(host.sentence)
  if (format === 'github') for (const one of findings) console.log(annotation(one))
}

/** A finding as a command of a GitHub workflow, which shows it at the line. */
function annotation({ place, code, path, message, hint }: PlacedFinding): string {
  const [, file, line, column] = /^(.*?)(?::(\d+):(\d+))?$/.exec(place)!
  const at = [`file=${file}`, ...(line ? [`line=${line}`, `col=${column}`] : []), `title=${code}`]
  const text = `${path}: ${message} ${hint ?? ''}`.trim()
  return `::error ${at.join()}::${text.replaceAll('%', '%25').replaceAll('\n', '%0A')}`
}
