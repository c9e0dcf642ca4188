/** What policies need of the host of a limiter, beyond the request. */
import { ConfigError, type ConfigProblem } from '../base/errors.ts'
import { type Config, problemIn } from './parse.ts'
import type { Policy } from './schema/policy.ts'
import { countsBytes } from './schema/uses-body.ts'

/** Why a host lacks something that policies may need. A host that has all of it lacks nothing. */
export interface Lacks {
  /** An origin, which it calls itself. */
  origin?: string
  /** The status and the header fields of the response. */
  response?: string
  /** The body of the response. */
  body?: string
}

/** The fields of a policy that need something of the host, with the values that do. */
const needs: [path: string, need: keyof Lacks, isNeeded: (policy: Policy) => boolean][] = [
  ['check', 'origin', ({ check }) => check === 'parallel'],
  ['countOnly', 'response', ({ countOnly }) => countOnly !== undefined],
  ['cost.response', 'response', ({ cost }) => cost.response !== undefined],
  ['cost.response', 'body', countsBytes],
  ['algorithm', 'response', ({ algorithm }) => algorithm === 'concurrency'],
  ['cost.usage', 'body', ({ cost }) => cost.usage !== undefined],
]

/** What to write instead. Other fields are left out. */
const instead: Record<string, string> = {
  check: 'before',
  algorithm: 'an algorithm that counts requests in a window',
}

/**
 * Checks the policies of a configuration with what its host lacks.
 * @param options the object that the configuration was parsed from
 * @throws {ConfigError} for each field that needs it
 */
export function checkHost({ policies }: Config, options: object, lacks: Lacks): void {
  const problems = policies.flatMap((policy, index) =>
    needs.flatMap(([path, need, isNeeded]): ConfigProblem[] => {
      const reason = lacks[need]
      if (reason === undefined || !isNeeded(policy)) return []
      const expected = `${instead[path] ?? 'nothing'}, because ${reason}`
      return [problemIn(options, ['policies', index, ...path.split('.')], expected)]
    }),
  )
  if (problems.length > 0) throw new ConfigError(problems)
}
