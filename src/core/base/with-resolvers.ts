/**
 * `Promise.withResolvers`, also on Node 20. If another request settles a promise, workerd continues in the request that created it, and does
 * not know that one if V8 has inlined `new Promise`: then the response fails. V8 never inlines `Promise.withResolvers`.
 */
export function withResolvers<Value>(): Resolvers<Value> {
  const { withResolvers: builtIn } = Promise as { withResolvers?: () => Resolvers<Value> }
  if (builtIn) return builtIn.call(Promise)
  let resolve!: Resolvers<Value>['resolve']
  const promise = new Promise<Value>((settle) => {
    resolve = settle
  })
  return { promise, resolve }
}

interface Resolvers<Value> {
  promise: Promise<Value>
  resolve: (value: Value | PromiseLike<Value>) => void
}
