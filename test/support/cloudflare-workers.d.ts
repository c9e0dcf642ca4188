declare module 'cloudflare:workers' {
  export const env: object
  export const waitUntil: (promise: Promise<unknown>) => void
}
