/** The public names of `sluice/testing`. */
export type { TestApp } from './app.ts'
export {
  type SluiceTest,
  type StartSluiceOptions,
  startSluice,
  type TestRequestInit,
} from './start.ts'
export type { TestWorker } from './wrangler.ts'
