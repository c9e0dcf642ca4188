import { ConfigError } from '../../src/core/base/errors.ts'
import type { Finding } from '../../src/core/config/findings.ts'
import { lintWorker, problemsOf } from '../../src/lint/lint.ts'
import { loadConfig, placed } from '../project/load-config.ts'
import { readBindings } from '../project/wrangler-config.ts'

/**
 * The findings of the linter, or the problems of a configuration that does not parse.
 * @param file the configuration
 * @param wrangler the configuration of wrangler, which may not exist
 */
export async function findingsOf(file: string, wrangler: string): Promise<Finding[]> {
  const { vars } = await readBindings(wrangler)
  return loadConfig(file).then(
    (config) => lintWorker(config, vars),
    (error) => {
      if (error instanceof ConfigError) return problemsOf(error)
      throw new Error(placed(file, error))
    },
  )
}

/** The findings as text; `undefined` without any. */
export async function checkPolicies(file: string, wrangler: string): Promise<string | undefined> {
  const findings = await findingsOf(file, wrangler)
  const lines = findings.map(({ code, path, message, hint }) => {
    const more = [hint, code === 'invalid' ? '' : `docs/reference/linter.md#${code}`].filter(
      Boolean,
    )
    return `${code}  ${path}: ${message}${more.length > 0 ? `\n  ${more.join(' ')}` : ''}`
  })
  if (findings.some(({ code }) => code === 'invalid')) {
    lines.push(
      'The configuration does not load until every invalid setting is fixed. docs/reference/configuration.md describes each field.',
    )
  }
  return lines.join('\n') || undefined
}
