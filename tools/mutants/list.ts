import { banListMutants } from './ban-list.ts'
import { bridgeMutants } from './bridge.ts'
import { compiledMutants } from './compiled.ts'
import { configMutants } from './config.ts'
import { devMutants } from './dev.ts'
import { distinctMutants } from './distinct.ts'
import { featuresMutants } from './features.ts'
import { gatewayMutants } from './gateway.ts'
import { httpMutants } from './http.ts'
import { limiterMutants } from './limiter.ts'
import { lintMutants } from './lint.ts'
import { luaMutants } from './lua.ts'
import { matchMutants } from './match.ts'
import type { Mutant } from './mutant.ts'
import { objectsMutants } from './objects.ts'
import { siteMutants } from './site.ts'
import { storeMutants } from './store.ts'
import { turnsMutants } from './turns.ts'
import { verifyMutants } from './verify.ts'
import { waitsMutants } from './waits.ts'

/** All mutants, of the Lua and of the TypeScript. */
export const mutants: Mutant[] = [
  ...bridgeMutants,
  ...compiledMutants,
  ...configMutants,
  ...devMutants,
  ...banListMutants,
  ...distinctMutants,
  ...featuresMutants,
  ...gatewayMutants,
  ...httpMutants,
  ...limiterMutants,
  ...lintMutants,
  ...luaMutants,
  ...matchMutants,
  ...objectsMutants,
  ...siteMutants,
  ...storeMutants,
  ...turnsMutants,
  ...waitsMutants,
  ...verifyMutants,
]
