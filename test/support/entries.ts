/** The functions that examples of the documentation use, as a page imports them: by name, and by entry of the package. */

import { parseConfig } from '../../src/core/config/parse.ts'
import { graphqlCost } from '../../src/features/graphql/graphql.ts'
import * as features from '../../src/features/index.ts'
import { durableObjects } from '../../src/stores/durable-objects/index.ts'

/** Checks the configurations of examples at once. */
function defineConfig(options: object) {
  parseConfig(options)
  return options
}

export const entries = { ...features, defineConfig, graphqlCost, durableObjects }

const entryOf: Record<string, string> = {
  defineConfig: 'sluice',
  graphqlCost: 'sluice/graphql',
  durableObjects: 'sluice/durable-objects',
}

/** The imports of the functions that a code calls. */
export const importsFor = (code: string): string =>
  Object.keys(entries)
    .filter((name) => new RegExp(`\\b${name}\\(`).test(code))
    .map((name) => `import { ${name} } from '${entryOf[name] ?? 'sluice/features'}'\n`)
    .join('')

/** Evaluates code that uses these functions, and `more` names. */
export const evaluate = (code: string, more: object = {}) => {
  const names = { ...entries, ...more }
  return new Function(...Object.keys(names), code)(...Object.values(names))
}
