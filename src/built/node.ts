/** `sluice/node` for a configuration that `npx sluice build` has parsed. */
import { variablesFor } from '../core/base/variables.ts'
import type { Limiter } from '../core/feature.ts'
import { pluginOf } from '../hosts/node/fastify.ts'
import { type FastifyRateLimiter, middlewareOf, type NodeRateLimiter } from '../hosts/node/node.ts'
import { type Built, limiterFor, ofApp } from './built.ts'

/** Its variables are known when it starts. */
function nodeLimiter(config: Built): Limiter {
  const limiter = limiterFor(ofApp(config), { lacking: 'node' })
  limiter.partsOf(variablesFor())
  return limiter
}

/** `rateLimiter` of `sluice/node`, for a built configuration. */
export const rateLimiter = (config: Built): NodeRateLimiter => middlewareOf(nodeLimiter(config))

/** `fastifyRateLimiter` of `sluice/node`, for a built configuration. */
export const fastifyRateLimiter = (config: Built): FastifyRateLimiter =>
  pluginOf(nodeLimiter(config))
