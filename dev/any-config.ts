/** The deployed Worker, but for its configuration, which comes as JSON in the variable CONFIG: one build tests them all. */
import { createGateway } from '../src/index.ts'

let gateway: ReturnType<typeof createGateway> | undefined

export default {
  fetch(request: Request, env: { CONFIG: string }, context: never) {
    gateway ??= createGateway(JSON.parse(env.CONFIG))
    return gateway.fetch(request, env, context)
  },
}
