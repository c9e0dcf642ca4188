import { loadConfig } from '../../cli/project/load-config.ts'
import { parseConfig } from '../../src/core/config/parse.ts'
import type { Limit } from '../../src/core/connection/store.ts'
import { compile } from '../../src/core/connection/upstash/compile.ts'
import { isPlain, toCompiled } from '../../src/core/connection/upstash/sets.ts'
import { defaultFields } from '../../src/features/defaults.ts'
import { luaParts } from './script.ts'

/**
 * The compiled script, with its comments, of the policies of a configuration that one can decide.
 * @param names the policies; all if empty
 * @throws if the configuration is invalid, or if no compiled script decides one of these policies, or all of them
 */
export async function shownScript(file: string, names: string[]): Promise<string> {
  const { policies } = parseConfig(await loadConfig(file), defaultFields)
  for (const name of names) {
    if (!policies.some((policy) => policy.name === name)) throw new Error(`no policy "${name}"`)
  }
  const limits = policies
    .filter(({ name }) => names.length === 0 || names.includes(name))
    .map((terms): Limit => {
      const { penalty, overrides, calendar } = terms
      return {
        subject: 'any',
        terms,
        cost: 1,
        ...(penalty && { penalty }),
        ...(overrides && { override: { share: 0, scalesBurst: false } }),
        ...(calendar && { period: [0, 1, 2] }),
      }
    })
  const general = limits.filter((limit) => !isPlain({ mode: 'take', limits: [limit] }))
  const shown = names.length === 0 ? limits.filter((limit) => !general.includes(limit)) : limits
  if (!isPlain({ mode: 'take', limits: shown })) {
    throw new Error('the general script decides a request with these policies')
  }
  const { compiled, ...parts } = luaParts()
  // Without the comment about the template.
  const template = compiled.slice(compiled.indexOf('\n\n') + 1)
  return compile({ ...parts, compiled: template }, shown.map(toCompiled), 'one', false)
}
