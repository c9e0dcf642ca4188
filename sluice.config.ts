import { defineConfig } from './src/config/parse.ts'

/** The policies and the origin: the one file an operator edits. Every field: docs/reference/configuration.md. */
export default defineConfig({
  // The origin of the zone whose route this Worker is on; or a URL. `npm start` sets the variable ORIGIN, which overrides it.
  origin: 'zone',
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
