import { defineConfig } from 'sluice'
import { durableObjects } from 'sluice/durable-objects'

/** The limits. "npm run check" finds mistakes. */
export default defineConfig({
  // Each client is counted by a Durable Object: no database and no secret.
  store: durableObjects(),
  policies: [
    { name: 'per-ip', limit: 10, window: '10s' },
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
