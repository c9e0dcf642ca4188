/** The features that match requests, and that `createGateway` has by default. For tools that match requests without a limiter. */
import type { Feature } from '../core/feature.ts'
import { apiKeys } from './api-keys/index.ts'
import { plans } from './plans/index.ts'

export const inMatch: readonly Feature[] = [apiKeys(), plans()]
