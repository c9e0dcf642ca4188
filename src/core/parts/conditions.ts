import type { Feature } from '../feature.ts'
import { compileConditions } from '../program/conditions.ts'
import { pathSources as sources } from '../program/paths.ts'
import { tellsApart } from '../program/tells-apart.ts'

export const conditions: Feature['compile'] = ({ config }) =>
  config.live || tellsApart(config) ? { compileConditions, sources } : {}
