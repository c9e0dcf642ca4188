import type { Feature } from '../../core/feature.ts'
import { write } from './write.ts'

export const compile: Feature['compile'] = ({ config }) =>
  [config, ...config.policies].some(({ refusal }) => typeof refusal === 'object') || config.live
    ? { refuse: write }
    : {}
