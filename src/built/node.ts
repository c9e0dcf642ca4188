/** `sluice/node` for a configuration that `npx sluice build` has parsed. */
import { pluginOf } from '../hosts/node/fastify.ts'
import { type FastifyRateLimiter, middlewareOf, type NodeRateLimiter } from '../hosts/node/node.ts'
import { type Built, limiterFor, ofApp } from './built.ts'

const nodeLimiter = (config: Built) => limiterFor(ofApp(config), 'node')

/** `rateLimiter` of `sluice/node`, for a built configuration. */
export const rateLimiter = (config: Built): NodeRateLimiter => middlewareOf(nodeLimiter(config))

/** `fastifyRateLimiter` of `sluice/node`, for a built configuration. */
export const fastifyRateLimiter = (config: Built): FastifyRateLimiter =>
  pluginOf(nodeLimiter(config))
