import { Redis } from '@upstash/redis/cloudflare'
import { defineConfig } from './src/core/config/options.ts'
import { exactOptions, upstash } from './src/stores/upstash.ts'

/** The policies and the origin. Operators edit this file only. docs/reference/configuration.md documents every field. */
export default defineConfig({
  // 'zone' is the origin of the zone that routes to this Worker. A URL works too. `npm start` overrides it with the variable ORIGIN.
  origin: 'zone',
  // The database of UPSTASH_REDIS_REST_URL and UPSTASH_REDIS_REST_TOKEN.
  store: upstash((env) => Redis.fromEnv(env, exactOptions)),
  policies: [
    { name: 'per-ip', algorithm: 'sliding-window', limit: 10, window: '10s' },
    { name: 'per-ip-daily', algorithm: 'fixed-window', limit: 1000, window: '1d' },
    {
      name: 'login',
      algorithm: 'fixed-window',
      limit: 5,
      window: '1m',
      match: { path: '/login', method: 'POST' },
      onStoreError: 'deny',
    },
  ],
})
