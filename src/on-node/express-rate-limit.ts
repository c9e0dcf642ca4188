/** `sluice/express-rate-limit` with the Redis of `REDIS_URL`. */
import { SluiceStore as Plain, type SluiceStoreOptions } from '../adapters/express-rate-limit.ts'
import { withRedisUrl } from '../stores/redis-url.ts'

export const SluiceStore: typeof Plain = class extends Plain {
  constructor(options: SluiceStoreOptions = {}) {
    super(withRedisUrl(options))
  }
}
