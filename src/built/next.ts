/** `sluice/next` for a configuration that `npx sluice build` has parsed. */
import {
  type AdmittedProxy,
  type LimitedProxy,
  type ProxyEvent,
  proxyOf,
} from '../hosts/node/next.ts'
import { type Built, limiterFor } from './built.ts'

/** `rateLimitProxy` of `sluice/next`, for a built configuration. */
export const rateLimitProxy = <
  Context extends Request = Request,
  Event extends ProxyEvent = ProxyEvent,
>(
  config: Built,
  proxy?: AdmittedProxy<Context, Event>,
): LimitedProxy<Context, Event> => proxyOf(limiterFor(config, 'next'), proxy)
