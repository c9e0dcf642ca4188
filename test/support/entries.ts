/** The functions that examples of the documentation use, as a page imports them: by name, and by entry of the package. */

import { defineConfig } from '../../src/core/config/parse.ts'
import { banList } from '../../src/features/ban-list/index.ts'
import { bodies } from '../../src/features/bodies/index.ts'
import { cluster } from '../../src/features/cluster/index.ts'
import { distinct } from '../../src/features/distinct/index.ts'
import { endpoints } from '../../src/features/endpoints/index.ts'
import { graphqlCost } from '../../src/features/graphql/graphql.ts'
import { headerSets } from '../../src/features/header-sets/index.ts'
import { jitter } from '../../src/features/jitter/index.ts'
import { jwt } from '../../src/features/jwt/index.ts'
import { leases } from '../../src/features/leases/index.ts'
import { observe } from '../../src/features/observe/index.ts'
import { overrides } from '../../src/features/overrides/index.ts'
import { proxies } from '../../src/features/proxies/index.ts'
import { quota } from '../../src/features/quota/index.ts'
import { refusals } from '../../src/features/refusals/index.ts'
import { turns } from '../../src/features/turns/index.ts'
import { durableObjects } from '../../src/stores/durable-objects/index.ts'

export const entries = {
  defineConfig,
  observe,
  endpoints,
  bodies,
  graphqlCost,
  headerSets,
  proxies,
  jitter,
  quota,
  refusals,
  jwt,
  cluster,
  leases,
  overrides,
  banList,
  distinct,
  turns,
  durableObjects,
}

const entryOf: Record<string, string> = {
  defineConfig: 'sluice',
  graphqlCost: 'sluice/graphql',
  banList: 'sluice/ban-list',
  durableObjects: 'sluice/durable-objects',
  headerSets: 'sluice/header-sets',
}

/** The imports of the functions that a code calls. */
export const importsFor = (code: string): string =>
  Object.keys(entries)
    .filter((name) => code.includes(`${name}(`))
    .map((name) => `import { ${name} } from '${entryOf[name] ?? `sluice/${name}`}'\n`)
    .join('')

/** Evaluates code that uses these functions, and `more` names. */
export const evaluate = (code: string, more: object = {}) => {
  const names = { ...entries, ...more }
  return new Function(...Object.keys(names), code)(...Object.values(names))
}
