/** `sluice/nest` with the Redis of `REDIS_URL`. */
import { type AdapterOptions, SluiceThrottlerStorage as Plain } from '../adapters/nest.ts'
import { withRedisUrl } from '../stores/redis-url.ts'

export const SluiceThrottlerStorage: typeof Plain = class extends Plain {
  constructor(options: AdapterOptions = {}) {
    super(withRedisUrl(options))
  }
}
