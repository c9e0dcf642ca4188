import type { ConfigOptions } from './options.ts'

/**
 * Returns a configuration, with types. `npx sluice check` and each limiter check it. A limiter freezes it: copy it to change it.
 * @example
 * export default defineConfig({
 *   origin: 'https://origin.example.com',
 *   policies: [{ name: 'per-ip', limit: 100, window: '1m' }],
 * })
 */
export const defineConfig = <Context = unknown>(
  options: ConfigOptions<Context>,
): ConfigOptions<Context> => options
