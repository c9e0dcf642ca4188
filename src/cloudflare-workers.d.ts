/** What this repository uses of the module of Workers. Users have the types of `wrangler types`. */
declare module 'cloudflare:workers' {
  export const env: object
  export const waitUntil: (promise: Promise<unknown>) => void
  export class WorkerEntrypoint<Env = unknown, Props = unknown> {
    protected readonly env: Env
    protected readonly ctx: { readonly props?: Props; waitUntil(promise: Promise<unknown>): void }
  }
}
