/** The exports of `cloudflare:workers` that this repository imports. A user's project has the types that `wrangler types` writes. */
declare module 'cloudflare:workers' {
  export const env: object
  export const waitUntil: (promise: Promise<unknown>) => void
  export class WorkerEntrypoint<Env = unknown, Props = unknown> {
    protected readonly env: Env
    protected readonly ctx: { readonly props?: Props; waitUntil(promise: Promise<unknown>): void }
  }
}
