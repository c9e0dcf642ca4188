import { ConfigError } from '../../src/core/base/errors.ts'
import type { Finding } from '../../src/core/config/findings.ts'
import type { ConfigOptions } from '../../src/core/config/options.ts'
import { lintApp, lintLimits, lintWorker, problemsOf } from '../../src/lint/lint.ts'
import { paint } from '../paint.ts'
import type { LoadedHost } from '../project/hosts.ts'
import { placed } from '../project/load-config.ts'
import { placeOf } from '../project/place.ts'
import { readBindings } from '../project/wrangler-config.ts'
import { heldTexts } from './held.ts'
import type { Details } from './run.ts'

/**
 * The findings of the linter, or the problems of a configuration that does not parse.
 * @param file the configuration
 * @param wrangler the configuration of wrangler, which may not exist
 * @param host runs the configuration
 */
export async function findingsOf(
  file: string,
  wrangler: string,
  host: LoadedHost,
): Promise<Finding[]> {
  const { vars } = await readBindings(wrangler)
  try {
    const config = await host.load()
    if (host.isGateway) return lintWorker(config, vars, host.parse)
    if (host.hasRequests) return lintApp(config, host.parse)
    return lintLimits(config, host.parse)
  } catch (error) {
    if (error instanceof ConfigError) return problemsOf(error)
    throw new Error(placed(file, error as Error))
  }
}

/** A finding, and where it is: `sluice.config.ts:7:12`. */
export type PlacedFinding = Finding & { place: string }

/**
 * The findings as text; `undefined` without any.
 * @param details gets the expectations that hold, as the detail of `policies`
 * @param found gets the findings
 */
export async function checkPolicies(
  file: string,
  wrangler: string,
  details: Details,
  host: LoadedHost,
  found: PlacedFinding[] = [],
): Promise<string | undefined> {
  const findings = await findingsOf(file, wrangler, host)
  if (findings.length === 0 && host.hasRequests) await describeExpectations(details, host)
  const lines = findings.map((finding) => {
    const { code, path, message, hint } = finding
    const place = placeOf(file, path)
    const more = [hint, code === 'invalid' ? '' : `npx sluice help ${code}`].filter(Boolean)
    found.push({ ...finding, place })
    const advice = more.length > 0 ? `\n${paint('dim', `  ${more.join(' ')}`)}` : ''
    return `${place}  ${paint('yellow', code)}  ${path}: ${message}${advice}`
  })
  if (findings.some(({ code, path }) => code === 'invalid' && !/^expect\b/.test(path))) {
    lines.push(
      'The configuration does not load until every invalid setting is fixed. npx sluice help NAME describes a field.',
    )
  }
  return lines.join('\n') || undefined
}

async function describeExpectations(details: Details, host: LoadedHost) {
  const written = (await host.load()) as ConfigOptions
  const texts = heldTexts({ config: host.parse(written), written })
  if (texts.length === 0) return
  const count = texts.length === 1 ? '1 expectation holds' : `${texts.length} expectations hold`
  details.policies = [count, ...texts].join('\n  ')
}
