import { countsLocally } from '../decide/engine.ts'
import { createLocalStore as createLocal } from '../fallback/local.ts'
import type { Feature } from '../feature.ts'

export const local: Feature['compile'] = ({ config }) =>
  countsLocally(config) ? { createLocal } : {}
